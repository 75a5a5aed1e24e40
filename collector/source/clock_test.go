package source_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/file"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// Values without a step are in the order in which they were written, also where the
// clock of the machine is set back between two of them.
func TestTheLastValueIsTheLatestWhereTheClockIsSetBack(t *testing.T) {
	for name, tc := range map[string]struct{ format, first, second string }{
		"lines": {"TEXT", "loss=0.9\n", "loss=0.3\n"},
		"rows":  {file.FormatCSV, "loss\n0.9\n", "0.3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics")
			sourcetest.Append(t, path, []byte(tc.first))
			now, drain, pauses := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC), make(chan struct{}), 0
			clock := source.Clock{Now: func() time.Time { return now }, After: func(time.Duration) <-chan time.Time {
				if pauses++; pauses == 1 {
					now = now.Add(-time.Hour)
					sourcetest.Append(t, path, []byte(tc.second))
					close(drain)
				}
				return time.After(time.Millisecond)
			}}
			src, err := file.Open(file.Config{Path: path, Format: tc.format, Metrics: []string{"loss"}, Drain: drain, Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			points, errs := sourcetest.Collected(t, src)
			if len(points) != 2 || len(errs) > 0 {
				t.Fatalf("points %v, errors %q", points, errs)
			}
			got := collector.Observe([]collector.Series{{Metric: "loss", Points: points}}, "loss")
			if got.Latest.Value != 0.3 {
				t.Errorf("the latest is %v, want the last", got.Latest)
			}
		})
	}
}
