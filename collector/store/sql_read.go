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
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// sqlTrial is a trial with its attempts, oldest first, and the names of its
// metrics.
type sqlTrial struct {
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

// trial reads a trial without its points; an empty one where there is none.
func (v tx) named(ctx context.Context, uid string) (sqlTrial, error) {
	t := sqlTrial{metrics: map[int64]string{}}
	args := []any{v.dialect.text(uid)}
	index := map[int64]int{}
	err := v.each(ctx, "SELECT id, name, started, final, note FROM attempt WHERE trial IN (SELECT id FROM trial WHERE uid = ?)", args, func(rows *sql.Rows) error {
		var id int64
		var started sql.NullInt64
		state := collector.AttemptState{Acked: map[string]int64{}}
		err := rows.Scan(&id, &state.Attempt.ID, &started, &state.Final, &state.Note)
		state.Attempt.Started = restored(started.Int64, started.Valid)
		index[id] = len(t.attempts)
		t.attempts = append(t.attempts, sqlAttempt{state: state})
		return err
	})
	if err != nil || len(t.attempts) == 0 {
		return t, err
	}
	err = v.each(ctx, `SELECT id, attempt, name, acked FROM source WHERE attempt IN
		(SELECT id FROM attempt WHERE trial IN (SELECT id FROM trial WHERE uid = ?)) ORDER BY name`, args, func(rows *sql.Rows) error {
		var s sqlSource
		var attempt, acked int64
		err := rows.Scan(&s.id, &attempt, &s.name, &acked)
		a := &t.attempts[index[attempt]]
		a.sources = append(a.sources, s)
		a.state.Acked[s.name] = acked
		return err
	})
	if err != nil {
		return t, err
	}
	err = v.each(ctx, "SELECT id, name FROM metric WHERE trial IN (SELECT id FROM trial WHERE uid = ?)", args, func(rows *sql.Rows) error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		t.metrics[id] = name
		return err
	})
	slices.SortFunc(t.attempts, func(a, b sqlAttempt) int { return collector.CompareAttempts(a.state.Attempt, b.state.Attempt) })
	for _, a := range t.attempts { // an engine's own order of bytes may be another
		slices.SortFunc(a.sources, func(a, b sqlSource) int { return cmp.Compare(a.name, b.name) })
	}
	return t, err
}

// Attempts implements collector.Store.
func (s *sqlStore) Attempts(ctx context.Context, trialUID string) (states []collector.AttemptState, err error) {
	err = s.read(ctx, "read the attempts of trial "+trialUID, func(v tx) error {
		t, err := v.named(ctx, trialUID)
		for _, a := range t.attempts {
			states = append(states, a.state)
		}
		return err
	})
	return states, err
}

// Metrics implements collector.Store.
func (s *sqlStore) Metrics(ctx context.Context, trialUID string) (names []string, err error) {
	err = s.read(ctx, "read the metrics of trial "+trialUID, func(v tx) error {
		t, err := v.named(ctx, trialUID)
		names = slices.Sorted(maps.Values(t.metrics))
		return err
	})
	return names, err
}

// Scan implements collector.Store.
func (s *sqlStore) Scan(ctx context.Context, trialUID string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
	return s.read(ctx, "read the points of trial "+trialUID, func(v tx) error {
		t, err := v.named(ctx, trialUID)
		if err != nil {
			return err
		}
		if len(metrics) > 0 {
			maps.DeleteFunc(t.metrics, func(_ int64, name string) bool { return !slices.Contains(metrics, name) })
		}
		if len(t.metrics) == 0 {
			return nil
		}
		query := v.dialect.pointQuery(t.metrics, len(metrics) > 0)
		for _, a := range slices.Backward(t.attempts) {
			for _, source := range a.sources {
				err := v.points(ctx, query, source, t.metrics, func(p collector.Point) error { return yield(a.state.Attempt, p) })
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
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

// points yields the points of a source. query is of pointQuery.
func (v tx) points(ctx context.Context, query string, source sqlSource, names map[int64]string, yield func(collector.Point) error) error {
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

// Inventory implements collector.Store.
func (s *sqlStore) Inventory(ctx context.Context) (infos []collector.TrialInfo, err error) {
	err = s.read(ctx, "list the trials of the store", func(v tx) error {
		sum := func(column string) string {
			return "CAST(coalesce(sum(source." + column + "), 0) AS " + v.dialect.integer + ")"
		}
		return v.each(ctx, "SELECT trial.uid, trial.namespace, trial.name, trial.experiment, trial.touched, "+sum("points")+", "+sum("text_bytes")+`,
			count(DISTINCT attempt.id) + count(source.id) + (SELECT count(*) FROM metric WHERE metric.trial = trial.id)
			FROM trial LEFT JOIN attempt ON attempt.trial = trial.id LEFT JOIN source ON source.attempt = attempt.id
			GROUP BY trial.id, trial.uid, trial.namespace, trial.name, trial.experiment, trial.touched ORDER BY trial.uid`, nil, func(rows *sql.Rows) error {
			var t collector.TrialInfo
			var touched int64
			err := rows.Scan(&t.UID, &t.Namespace, &t.Name, &t.Experiment, &touched, &t.Points, &t.TextBytes, &t.Names)
			t.Touched = time.Unix(touched, 0).UTC()
			infos = append(infos, t)
			return err
		})
	})
	return infos, err
}

// Stat implements collector.Store.
func (s *sqlStore) Stat(ctx context.Context) (collector.Stat, error) {
	stat := collector.Stat{Schema: s.schema}
	err := s.open(func() error {
		for _, statement := range s.dialect.before {
			if _, err := s.reads.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.read(ctx, "", func(v tx) error {
			if err := v.row(ctx, v.dialect.version).Scan(&stat.Engine); err != nil {
				return err
			}
			if err := v.row(ctx, v.dialect.size).Scan(&stat.Bytes); err != nil {
				return err
			}
			return v.row(ctx, `SELECT (SELECT count(*) FROM point), (SELECT count(*) FROM trial),
				(SELECT count(*) FROM (SELECT DISTINCT namespace, experiment FROM trial WHERE experiment <> ?) AS known)`,
				v.dialect.text("")).Scan(&stat.Points, &stat.Trials, &stat.Experiments)
		})
	}
	return stat, s.explain("measure the store", err)
}
