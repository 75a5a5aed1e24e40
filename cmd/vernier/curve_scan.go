package main

import (
	"context"
	"encoding/csv"
	"io"

	"github.com/vernier-ml/vernier/collector"
)

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
