package probe_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/probe"
	"github.com/vernier-ml/vernier/collector/source/events"
)

// TestProbeCountsSessionsAsATrialDoes holds that the probe shows of several
// sessions in one directory what the store would make of them.
func TestProbeCountsSessionsAsATrialDoes(t *testing.T) {
	type session struct {
		step   int64
		values []float32
	}
	tests := map[string]struct {
		sessions []session
		want     string // metric: least, greatest, last, purged
	}{
		"one":                            {[]session{{0, []float32{3, 2}}}, "2 to 3, then 2, without 0"},
		"a later one goes on":            {[]session{{0, []float32{3, 2}}, {2, []float32{1}}}, "1 to 3, then 1, without 0"},
		"a later one begins anew":        {[]session{{0, []float32{0.1, 0.2}}, {0, []float32{0.9, 0.6}}}, "0.6 to 0.9, then 0.6, without 2"},
		"a later one begins in the past": {[]session{{0, []float32{0.9, 0.1, 0.2}}, {1, []float32{0.8, 0.7}}}, "0.7 to 0.9, then 0.7, without 2"},
		"three, the last one earliest":   {[]session{{2, []float32{0.1, 0.2}}, {1, []float32{0.3, 0.05}}, {0, []float32{0.9, 0.6}}}, "0.6 to 0.9, then 0.6, without 4"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, s := range tc.sessions {
				put(t, filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%d", i)), eventFile(1e9+1000*float64(i), "loss", s.step, s.values...))
			}
			r := run(t, probe.Config{Path: dir}, "loss")
			if len(r.Metrics) != 1 {
				t.Fatalf("%d metrics", len(r.Metrics))
			}
			m := r.Metrics[0]
			if got := fmt.Sprintf("%v to %v, then %v, without %d", *m.Min, *m.Max, m.Last, m.Purged); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			o := stored(t, dir)
			want := fmt.Sprintf("%v to %v, then %v of %d", o.Min.Value, o.Max.Value, o.Latest.Value, o.Points)
			if got := fmt.Sprintf("%v to %v, then %v of %d", *m.Min, *m.Max, m.Last, m.Count); got != want {
				t.Errorf("%s, and the store gives %s", got, want)
			}
		})
	}
}

// stored is what the store makes of the metric loss of a directory.
func stored(t *testing.T, dir string) collector.Observation {
	t.Helper()
	drain := make(chan struct{})
	close(drain)
	events, err := events.New(events.Config{Dir: dir, Metrics: []string{"loss"}, Drain: drain})
	if err != nil {
		t.Fatal(err)
	}
	var series []collector.Series
	for p, err := range events.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for len(series) <= p.Session {
			n := len(series)
			series = append(series, collector.Series{Metric: "loss", Attempt: collector.Attempt{ID: fmt.Sprint(n), Started: p.Began[n]}})
		}
		series[p.Session].Points = append(series[p.Session].Points, p.Point)
	}
	return collector.Observe(series, "loss")
}
