package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector"
)

func (s *sqlite) Attempts(ctx context.Context, trialUID string) ([]collector.AttemptState, error) {
	var states []collector.AttemptState
	err := s.read(ctx, func(tx *sql.Tx) error {
		found, err := readAttempts(ctx, tx, trialUID)
		for _, a := range found {
			states = append(states, a.state)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read attempts of trial %s: %w", trialUID, err)
	}
	return states, nil
}

func (s *sqlite) Points(ctx context.Context, trialUID string, metrics ...string) ([]collector.Series, error) {
	var series []collector.Series
	err := s.read(ctx, func(tx *sql.Tx) error {
		attempts, err := readAttempts(ctx, tx, trialUID)
		if err != nil {
			return err
		}
		wanted, err := readMetrics(ctx, tx, trialUID, metrics)
		if err != nil || len(wanted) == 0 {
			return err
		}
		query := pointQuery(wanted, len(metrics) > 0)
		for _, a := range attempts {
			byMetric := map[string][]collector.Point{}
			for _, source := range a.sources {
				if err := readPoints(ctx, tx, query, source, func(metric int64, p collector.Point) {
					p.Metric = wanted[metric]
					byMetric[p.Metric] = append(byMetric[p.Metric], p)
				}); err != nil {
					return err
				}
			}
			series = append(series, inOrder(a.state.Attempt, byMetric)...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read points of trial %s: %w", trialUID, err)
	}
	return series, nil
}

func (s *sqlite) Observe(ctx context.Context, trialUID string, metrics ...string) ([]collector.Observation, error) {
	var observations []collector.Observation
	err := s.read(ctx, func(tx *sql.Tx) error {
		wanted, err := readMetrics(ctx, tx, trialUID, metrics)
		if err != nil {
			return err
		}
		condensed, err := condense(ctx, tx, trialUID, pointQuery(wanted, len(metrics) > 0), wanted)
		if err != nil {
			return err
		}
		names := metrics
		if len(names) == 0 {
			names = slices.Sorted(maps.Values(wanted))
		}
		for _, name := range names {
			c := condensed[name]
			if c == nil {
				c = collector.NewCondenser(name)
			}
			observations = append(observations, c.Observation())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("condense the points of trial %s: %w", trialUID, err)
	}
	return observations, nil
}

// condense reads the points of a trial in the order that condensers need, and
// keeps none. It returns the condensers by metric.
func condense(ctx context.Context, tx *sql.Tx, trialUID, query string, wanted map[int64]string) (map[string]*collector.Condenser, error) {
	byID := make(map[int64]*collector.Condenser, len(wanted))
	byName := make(map[string]*collector.Condenser, len(wanted))
	for id, name := range wanted {
		byID[id] = collector.NewCondenser(name)
		byName[name] = byID[id]
	}
	if len(wanted) == 0 {
		return byName, nil
	}
	attempts, err := readAttempts(ctx, tx, trialUID)
	if err != nil {
		return nil, err
	}
	for _, a := range slices.Backward(attempts) {
		slices.SortFunc(a.sources, func(a, b sqliteSource) int { return cmp.Compare(a.name, b.name) })
		for _, source := range a.sources {
			err := readPoints(ctx, tx, query, source, func(metric int64, p collector.Point) {
				byID[metric].Add(a.state.Attempt, p)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return byName, nil
}

func (s *sqlite) Metrics(ctx context.Context, trialUID string) ([]string, error) {
	var names []string
	err := s.read(ctx, func(tx *sql.Tx) error {
		found, err := readMetrics(ctx, tx, trialUID, nil)
		names = slices.Sorted(maps.Values(found))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the metrics of trial %s: %w", trialUID, err)
	}
	return names, nil
}

func (s *sqlite) Trials(ctx context.Context) ([]collector.TrialID, error) {
	var ids []collector.TrialID
	err := s.read(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, "SELECT uid, namespace, name FROM trial ORDER BY uid", nil, func(rows *sql.Rows) error {
			var id collector.TrialID
			err := rows.Scan(&id.UID, &id.Namespace, &id.Name)
			ids = append(ids, id)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list trials: %w", err)
	}
	return ids, nil
}

type sqliteAttempt struct {
	state   collector.AttemptState
	sources []sqliteSource
}

type sqliteSource struct {
	id   int64
	name string
}

func readAttempts(ctx context.Context, tx *sql.Tx, trialUID string) ([]sqliteAttempt, error) {
	var attempts []sqliteAttempt
	index := map[int64]int{}
	err := each(ctx, tx, `SELECT id, name, started, final, note FROM attempt
		WHERE trial = (SELECT id FROM trial WHERE uid = ?)`, []any{trialUID}, func(rows *sql.Rows) error {
		var id int64
		var started sql.NullInt64
		state := collector.AttemptState{Acked: map[string]int64{}}
		err := rows.Scan(&id, &state.Attempt.ID, &started, &state.Final, &state.Note)
		state.Attempt.Started = restored(started.Int64, started.Valid)
		index[id] = len(attempts)
		attempts = append(attempts, sqliteAttempt{state: state})
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, `SELECT source.id, source.attempt, source.name, source.acked
		FROM source JOIN attempt ON attempt.id = source.attempt
		WHERE attempt.trial = (SELECT id FROM trial WHERE uid = ?)`, []any{trialUID}, func(rows *sql.Rows) error {
		var s sqliteSource
		var attempt, acked int64
		if err := rows.Scan(&s.id, &attempt, &s.name, &acked); err != nil {
			return err
		}
		a := &attempts[index[attempt]]
		a.sources = append(a.sources, s)
		a.state.Acked[s.name] = acked
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(attempts, func(a, b sqliteAttempt) int {
		return compareAttempts(a.state.Attempt, b.state.Attempt)
	})
	return attempts, nil
}

// readMetrics returns the numbers and names of a trial's metrics: of those named,
// or of all when none is.
func readMetrics(ctx context.Context, tx *sql.Tx, trialUID string, named []string) (map[int64]string, error) {
	names := map[int64]string{}
	err := each(ctx, tx, `SELECT id, name FROM metric
		WHERE trial = (SELECT id FROM trial WHERE uid = ?)`, []any{trialUID}, func(rows *sql.Rows) error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		if len(named) == 0 || slices.Contains(named, name) {
			names[id] = name
		}
		return err
	})
	return names, err
}

// pointQuery selects the points of one source in order of seq, which is the order
// of the primary key: SQLite sorts nothing. Where only some metrics are wanted,
// the others' points are not handed out.
func pointQuery(wanted map[int64]string, some bool) string {
	where := ""
	if some {
		var ids []string
		for _, id := range slices.Sorted(maps.Keys(wanted)) {
			ids = append(ids, strconv.FormatInt(id, 10))
		}
		where = " AND metric IN (" + strings.Join(ids, ", ") + ")"
	}
	return "SELECT seq, metric, step, time, value, text FROM point WHERE source = ?" + where + " ORDER BY seq"
}

// readPoints yields the points of a source as they are read; query is of
// pointQuery. Their Metric is not set.
func readPoints(ctx context.Context, tx *sql.Tx, query string, source sqliteSource, yield func(metric int64, p collector.Point)) error {
	return each(ctx, tx, query,
		[]any{source.id}, func(rows *sql.Rows) error {
			var metric int64
			var nanos sql.NullInt64
			var value sql.NullFloat64
			var text sql.NullString
			p := collector.Point{Source: source.name}
			if err := rows.Scan(&p.Seq, &metric, &p.Step, &nanos, &value, &text); err != nil {
				return err
			}
			p.Time, p.Text, p.Value = restored(nanos.Int64, nanos.Valid), text.String, value.Float64
			if !value.Valid {
				p.Value = math.NaN()
			}
			yield(metric, p)
			return nil
		})
}

// each calls scan for every row.
func each(ctx context.Context, tx *sql.Tx, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err is looked at
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
