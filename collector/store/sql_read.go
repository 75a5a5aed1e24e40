package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector"
)

// trialFilter selects trials: a condition on the table trial and its arguments.
type trialFilter struct {
	where string
	args  []any
}

func (v view) trial(uid string) trialFilter {
	return trialFilter{"uid = ?", []any{v.dialect.text(uid)}}
}

func (v view) experiment(namespace, name string) trialFilter {
	return trialFilter{"namespace = ? AND experiment = ?", []any{v.dialect.text(namespace), v.dialect.text(name)}}
}

// sqlTrial is a trial with its attempts, oldest first, and the names of its
// metrics.
type sqlTrial struct {
	collector.TrialInfo
	attempts []sqlAttempt
	metrics  map[int64]string
}

type sqlAttempt struct {
	state   collector.AttemptState
	sources []sqlSource // in order of name
}

type sqlSource struct {
	id   int64
	name string
}

// named returns the numbers and names of the trial's metrics that are named, or of
// all when none is.
func (t *sqlTrial) named(metrics []string) map[int64]string {
	if len(metrics) == 0 {
		return t.metrics
	}
	wanted := map[int64]string{}
	for id, name := range t.metrics {
		if slices.Contains(metrics, name) {
			wanted[id] = name
		}
	}
	return wanted
}

// trials reads trials without their points, in order of UID.
func (v view) trials(ctx context.Context, f trialFilter) ([]*sqlTrial, error) {
	var all []*sqlTrial
	byID := map[int64]*sqlTrial{}
	err := v.each(ctx, "SELECT id, uid, namespace, name, experiment, touched FROM trial WHERE "+f.where, f.args, func(rows *sql.Rows) error {
		t := &sqlTrial{metrics: map[int64]string{}}
		id, err := t.scan(rows)
		all, byID[id] = append(all, t), t
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := v.attempts(ctx, f, byID); err != nil {
		return nil, err
	}
	err = v.each(ctx, "SELECT id, trial, name FROM metric WHERE trial IN (SELECT id FROM trial WHERE "+f.where+")", f.args, func(rows *sql.Rows) error {
		var id, trial int64
		var name string
		if err := rows.Scan(&id, &trial, &name); err != nil {
			return err
		}
		if t := byID[trial]; t != nil {
			t.metrics[id] = name
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *sqlTrial) int { return cmp.Compare(a.UID, b.UID) })
	return all, err
}

func (v view) attempts(ctx context.Context, f trialFilter, trials map[int64]*sqlTrial) error {
	type place struct {
		trial *sqlTrial
		index int
	}
	places := map[int64]place{}
	err := v.each(ctx, "SELECT id, trial, name, started, final, note FROM attempt WHERE trial IN (SELECT id FROM trial WHERE "+f.where+")",
		f.args, func(rows *sql.Rows) error {
			var id, trial int64
			var started sql.NullInt64
			state := collector.AttemptState{Acked: map[string]int64{}}
			if err := rows.Scan(&id, &trial, &state.Attempt.ID, &started, &state.Final, &state.Note); err != nil {
				return err
			}
			state.Attempt.Started = restored(started.Int64, started.Valid)
			if t := trials[trial]; t != nil {
				places[id] = place{t, len(t.attempts)}
				t.attempts = append(t.attempts, sqlAttempt{state: state})
			}
			return nil
		})
	if err != nil {
		return err
	}
	err = v.each(ctx, `SELECT id, attempt, name, acked FROM source WHERE attempt IN
		(SELECT id FROM attempt WHERE trial IN (SELECT id FROM trial WHERE `+f.where+"))", f.args, func(rows *sql.Rows) error {
		var s sqlSource
		var attempt, acked int64
		if err := rows.Scan(&s.id, &attempt, &s.name, &acked); err != nil {
			return err
		}
		if p := places[attempt]; p.trial != nil {
			a := &p.trial.attempts[p.index]
			a.sources = append(a.sources, s)
			a.state.Acked[s.name] = acked
		}
		return nil
	})
	for _, t := range trials {
		slices.SortFunc(t.attempts, func(a, b sqlAttempt) int { return compareAttempts(a.state.Attempt, b.state.Attempt) })
		for i := range t.attempts {
			slices.SortFunc(t.attempts[i].sources, func(a, b sqlSource) int { return cmp.Compare(a.name, b.name) })
		}
	}
	return err
}

// one reads one trial; nil when there is none.
func (v view) one(ctx context.Context, uid string) (*sqlTrial, error) {
	all, err := v.trials(ctx, v.trial(uid))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// pointQuery selects the points of one source in order of seq, which is the order
// of the primary key: nothing is sorted. Where only some metrics are wanted, the
// others' points are not handed out.
func (d *dialect) pointQuery(wanted map[int64]string, some bool) string {
	where := ""
	if some {
		var ids []string
		for _, id := range slices.Sorted(maps.Keys(wanted)) {
			ids = append(ids, strconv.FormatInt(id, 10))
		}
		where = " AND metric IN (" + strings.Join(ids, ", ") + ")"
	}
	return "SELECT seq, metric, step, time, value, " + d.special + ", text FROM point WHERE source = ?" + where + " ORDER BY seq"
}

// scan yields the points of a trial as they are read, in the order that condensers
// need.
func (v view) scan(ctx context.Context, t *sqlTrial, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
	wanted := t.named(metrics)
	if len(wanted) == 0 {
		return nil
	}
	query := v.dialect.pointQuery(wanted, len(wanted) < len(t.metrics))
	for _, a := range slices.Backward(t.attempts) {
		for _, source := range a.sources {
			err := v.points(ctx, query, source, wanted, func(p collector.Point) error { return yield(a.state.Attempt, p) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// points yields the points of a source. query is of pointQuery.
func (v view) points(ctx context.Context, query string, source sqlSource, names map[int64]string, yield func(collector.Point) error) error {
	var metric int64
	var nanos, special sql.NullInt64
	var value sql.NullFloat64
	var text sql.NullString
	return v.each(ctx, query, []any{source.id}, func(rows *sql.Rows) error {
		if err := ctx.Err(); err != nil {
			return err // rows that are here already are handed out after the end
		}
		p := collector.Point{Source: source.name}
		if err := rows.Scan(&p.Seq, &metric, &p.Step, &nanos, &value, &special, &text); err != nil {
			return err
		}
		p.Metric, p.Time, p.Text, p.Value = names[metric], restored(nanos.Int64, nanos.Valid), text.String, value.Float64
		switch {
		case special.Valid && special.Int64 == 0:
			p.Value = math.Copysign(0, -1)
		case special.Valid:
			p.Value = math.Inf(int(special.Int64))
		case !value.Valid:
			p.Value = math.NaN()
		}
		return yield(p)
	})
}
