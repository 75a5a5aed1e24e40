package main

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/local"
)

var errFound = errors.New("found")

// stepOfValue is the first step at which the newest attempt that has the value
// reported it, or nil.
func stepOfValue(ctx context.Context, s collector.Store, uid, metric string, value float64) *int64 {
	var step *int64
	_ = s.Scan(ctx, uid, []string{metric}, func(_ collector.Attempt, p collector.Point) error {
		if p.Value != value || p.Step == collector.NoStep {
			return nil
		}
		step = &p.Step
		return errFound
	})
	return step
}

// bestStep looks the step of the best trial's objective up in the store of the
// embedded instance. It is nil where that is not known: elsewhere, and for a curve
// that was deleted.
func (s *session) bestStep(ctx context.Context, v experimentView) (step *int64) {
	best, ok := v.best()
	value, isNumber := best.score()
	if !ok || !isNumber || best.Object == nil || s.home == "" || best.Metrics[0].strategy == string(v1beta1.ExtractByLatest) {
		return nil
	}
	_ = withStore(ctx, "sqlite:"+local.Home(s.home).StorePath(), func(points collector.Store) error {
		step = stepOfValue(ctx, points, string(best.Object.UID), best.Metrics[0].Name, value)
		return nil
	})
	return step
}

// lastValue is when the newest value of a trial's objective came; zero where that is not
// known, as elsewhere than on the embedded instance.
func (s *session) lastValue(ctx context.Context, v experimentView, t trialView) (at time.Time) {
	if t.Object == nil || s.home == "" {
		return at
	}
	_ = withStore(ctx, "sqlite:"+local.Home(s.home).StorePath(), func(points collector.Store) error {
		return points.Scan(ctx, string(t.Object.UID), []string{v.metricName()}, func(_ collector.Attempt, p collector.Point) error {
			if p.Time.After(at) {
				at = p.Time
			}
			return nil
		})
	})
	return at
}

var curveColumns = []string{"metric", "attempt", "step", "time", "value", "min", "max", "points"}

// scanCSV writes each point of the metrics as it is read, in memory that does not
// grow with their number. Attempts that are not numbered are left out.
func scanCSV(ctx context.Context, s collector.Store, trial collector.TrialID, metrics []string, numbers map[string]int, out io.Writer) error {
	w := csv.NewWriter(out)
	failed := w.Write(curveColumns)
	err := s.Scan(ctx, trial.UID, metrics, func(a collector.Attempt, p collector.Point) error {
		c := curve{Metric: p.Metric, Attempt: numbers[a.ID]}
		if c.Attempt == 0 || failed != nil {
			return failed
		}
		failed = w.Write(pointRow(p).cells(c, timeCSV))
		return failed
	})
	w.Flush()
	if failed == nil {
		failed = w.Error()
	}
	if failed != nil { // what the store says of it would blame the store
		return failed
	}
	return err
}
