package store

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// Attempts implements collector.Store.
func (s *sqlStore) Attempts(ctx context.Context, trialUID string) ([]collector.AttemptState, error) {
	var states []collector.AttemptState
	err := s.ofTrial(ctx, trialUID, func(_ view, t *sqlTrial) error {
		for _, a := range t.attempts {
			states = append(states, a.state)
		}
		return nil
	})
	return states, s.explain("read the attempts of trial "+trialUID, err)
}

// Points implements collector.Store.
func (s *sqlStore) Points(ctx context.Context, trialUID string, metrics ...string) ([]collector.Series, error) {
	var series []collector.Series
	err := s.ofTrial(ctx, trialUID, func(v view, t *sqlTrial) error {
		byAttempt := map[string]map[string][]collector.Point{}
		err := v.scan(ctx, t, metrics, func(a collector.Attempt, p collector.Point) error {
			if byAttempt[a.ID] == nil {
				byAttempt[a.ID] = map[string][]collector.Point{}
			}
			byAttempt[a.ID][p.Metric] = append(byAttempt[a.ID][p.Metric], p)
			return nil
		})
		for _, a := range t.attempts {
			series = append(series, inOrder(a.state.Attempt, byAttempt[a.state.Attempt.ID])...)
		}
		return err
	})
	if err != nil {
		return nil, s.explain("read the points of trial "+trialUID, err)
	}
	return series, nil
}

// Scan implements collector.Store.
func (s *sqlStore) Scan(ctx context.Context, trialUID string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
	err := s.ofTrial(ctx, trialUID, func(v view, t *sqlTrial) error { return v.scan(ctx, t, metrics, yield) })
	return s.explain("read the points of trial "+trialUID, err)
}

// Reduce implements collector.Store.
func (s *sqlStore) Reduce(ctx context.Context, trialUID string, asks ...collector.Ask) ([]collector.Observation, error) {
	observations := collector.Reduce(nil, asks...)
	err := s.ofTrial(ctx, trialUID, func(v view, t *sqlTrial) (err error) {
		observations, err = v.reduce(ctx, t, asks)
		return err
	})
	if err != nil {
		return nil, s.explain("condense the points of trial "+trialUID, err)
	}
	return observations, nil
}

// Observe implements collector.Store.
func (s *sqlStore) Observe(ctx context.Context, trialUID string, metrics ...string) ([]collector.Observation, error) {
	if len(metrics) > 0 {
		return s.Reduce(ctx, trialUID, asksFor(metrics)...)
	}
	var observations []collector.Observation
	err := s.ofTrial(ctx, trialUID, func(v view, t *sqlTrial) (err error) {
		observations, err = v.reduce(ctx, t, asksFor(slices.Sorted(maps.Values(t.metrics))))
		return err
	})
	return observations, s.explain("condense the points of trial "+trialUID, err)
}

func asksFor(metrics []string) []collector.Ask {
	asks := make([]collector.Ask, len(metrics))
	for i, m := range metrics {
		asks[i].Metric = m
	}
	return asks
}

func (v view) reduce(ctx context.Context, t *sqlTrial, asks []collector.Ask) ([]collector.Observation, error) {
	return collector.Condense(asks, func(metrics []string, yield func(collector.Attempt, collector.Point)) error {
		return v.scan(ctx, t, metrics, func(a collector.Attempt, p collector.Point) error {
			yield(a, p)
			return nil
		})
	})
}

// Sampled implements collector.Store.
func (s *sqlStore) Sampled(ctx context.Context, trialUID string, buckets int, metrics ...string) ([]collector.SampledSeries, error) {
	if err := collector.CheckBuckets(buckets); err != nil {
		return nil, err
	}
	var series []collector.SampledSeries
	err := s.ofTrial(ctx, trialUID, func(v view, t *sqlTrial) (err error) {
		series, err = v.sample(ctx, t, buckets, metrics)
		return err
	})
	return series, s.explain("sample the points of trial "+trialUID, err)
}

// SampledExperiment implements collector.Store.
func (s *sqlStore) SampledExperiment(ctx context.Context, namespace, experiment string, buckets int, metrics ...string) ([]collector.SampledTrial, error) {
	if err := collector.CheckBuckets(buckets); err != nil {
		return nil, err
	}
	var all []collector.SampledTrial
	err := s.read(ctx, func(v view) error {
		trials, err := v.trials(ctx, v.experiment(namespace, experiment))
		if err != nil {
			return err
		}
		slices.SortStableFunc(trials, func(a, b *sqlTrial) int { return cmp.Compare(a.Name, b.Name) })
		for _, t := range trials {
			series, err := v.sample(ctx, t, buckets, metrics)
			if err != nil {
				return err
			}
			if len(series) > 0 {
				all = append(all, collector.SampledTrial{Trial: t.TrialID, Series: series})
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.explain("sample the points of experiment "+namespace+"/"+experiment, err)
	}
	return all, nil
}

func (v view) sample(ctx context.Context, t *sqlTrial, buckets int, metrics []string) ([]collector.SampledSeries, error) {
	type key struct{ attempt, metric string }
	samplers := map[key]*collector.Sampler{}
	err := v.scan(ctx, t, metrics, func(a collector.Attempt, p collector.Point) error {
		k := key{a.ID, p.Metric}
		if samplers[k] == nil {
			samplers[k] = collector.NewSampler(buckets)
		}
		samplers[k].Add(p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []collector.SampledSeries
	names := slices.Sorted(maps.Values(t.metrics))
	for _, a := range t.attempts {
		for _, name := range names {
			if sampler := samplers[key{a.state.Attempt.ID, name}]; sampler != nil {
				series := collector.SampledSeries{Attempt: a.state.Attempt, Metric: name}
				series.Buckets, series.BySeq = sampler.Buckets()
				all = append(all, series)
			}
		}
	}
	return all, nil
}

// ofTrial runs act for a trial on one state of the store, and does nothing when
// there is no such trial.
func (s *sqlStore) ofTrial(ctx context.Context, uid string, act func(view, *sqlTrial) error) error {
	return s.read(ctx, func(v view) error {
		t, err := v.one(ctx, uid)
		if err != nil || t == nil {
			return err
		}
		return act(v, t)
	})
}

// Metrics implements collector.Store.
func (s *sqlStore) Metrics(ctx context.Context, trialUID string) ([]string, error) {
	var names []string
	err := s.ofTrial(ctx, trialUID, func(_ view, t *sqlTrial) error {
		names = slices.Sorted(maps.Values(t.metrics))
		return nil
	})
	return names, s.explain("read the metrics of trial "+trialUID, err)
}

// Count implements collector.Store.
func (s *sqlStore) Count(ctx context.Context, trialUID string) (n int64, err error) {
	err = s.read(ctx, func(v view) error {
		return v.tx.QueryRowContext(ctx, v.dialect.sql(`SELECT count(*) FROM point WHERE source IN (SELECT source.id FROM source
			JOIN attempt ON attempt.id = source.attempt JOIN trial ON trial.id = attempt.trial WHERE trial.uid = ?)`),
			s.dialect.text(trialUID)).Scan(&n)
	})
	return n, s.explain("count the points of trial "+trialUID, err)
}

// Trials implements collector.Store.
func (s *sqlStore) Trials(ctx context.Context) ([]collector.TrialID, error) {
	infos, err := s.Inventory(ctx)
	var ids []collector.TrialID
	for _, t := range infos {
		ids = append(ids, t.TrialID)
	}
	return ids, err
}

// Inventory implements collector.Store.
func (s *sqlStore) Inventory(ctx context.Context) ([]collector.TrialInfo, error) {
	var infos []collector.TrialInfo
	err := s.read(ctx, func(v view) error {
		return v.each(ctx, "SELECT id, uid, namespace, name, experiment, touched FROM trial ORDER BY uid", nil, func(rows *sql.Rows) error {
			var t sqlTrial
			_, err := t.scan(rows)
			infos = append(infos, t.TrialInfo)
			return err
		})
	})
	return infos, s.explain("list the trials of the store", err)
}

func (t *sqlTrial) scan(rows *sql.Rows) (id int64, err error) {
	var touched int64
	err = rows.Scan(&id, &t.UID, &t.Namespace, &t.Name, &t.Experiment, &touched)
	t.Touched = time.Unix(touched, 0).UTC()
	return id, err
}

// Stat implements collector.Store.
func (s *sqlStore) Stat(ctx context.Context) (collector.Stat, error) {
	stat := collector.Stat{Schema: s.schema}
	err := s.do(request{ctx: ctx, act: func(ctx context.Context, c *sqlConn) error { return c.size(ctx, &stat) }})
	if err == nil {
		err = s.read(ctx, func(v view) error {
			return v.tx.QueryRowContext(ctx, v.dialect.sql(`SELECT (SELECT count(*) FROM point), (SELECT count(*) FROM trial),
				(SELECT count(*) FROM (SELECT DISTINCT namespace, experiment FROM trial WHERE experiment <> ?) AS known)`),
				s.dialect.text("")).Scan(&stat.Points, &stat.Trials, &stat.Experiments)
		})
	}
	return stat, s.explain("measure the store", err)
}

// size asks the engine for its version and how much room the points take up.
func (c *sqlConn) size(ctx context.Context, stat *collector.Stat) error {
	for _, statement := range c.dialect.before {
		if err := c.each(ctx, statement, nil, func(*sql.Rows) error { return nil }); err != nil {
			return err
		}
	}
	if err := c.conn.QueryRowContext(ctx, c.dialect.version).Scan(&stat.Engine); err != nil {
		return err
	}
	return c.conn.QueryRowContext(ctx, c.dialect.size).Scan(&stat.Bytes)
}
