package collector_test

import (
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// A restarted program may print a value before it states its first step, such as
// "resumed, loss=0.9".
func TestObservationAfterARestartThatBeginsWithoutAStep(t *testing.T) {
	series := func(n int64, points ...collector.Point) collector.Series {
		for i := range points {
			points[i].Metric, points[i].Source, points[i].Seq = "loss", "stdout", int64(i)
		}
		return collector.Series{Attempt: collector.Attempt{ID: "pod/" + string(rune('0'+n)), Started: time.Unix(n, 0)}, Metric: "loss", Points: points}
	}
	first := series(0, collector.Point{Value: 0.9, Step: 1}, collector.Point{Value: 0.1, Step: 2}, collector.Point{Value: 0.5, Step: 3})
	second := series(1, collector.Point{Value: 0.8, Step: collector.NoStep}, collector.Point{Value: 0.7, Step: 3}, collector.Point{Value: 0.6, Step: 4})
	o := collector.Observe([]collector.Series{first, second}, "loss")
	if o.Min.Value != 0.1 || o.Max.Value != 0.9 || o.Latest.Value != 0.6 || o.Points != 5 {
		t.Errorf("least %v, greatest %v, latest %v of %d points; want 0.1, 0.9, 0.6 of 5", o.Min.Value, o.Max.Value, o.Latest.Value, o.Points)
	}
}

// A progress bar that says `loss: 0.01`, of an attempt that was killed before it printed
// the result as loss=0.5, is no result.
func TestItemsOfAnOlderAttemptDoNotCountBesideValues(t *testing.T) {
	series := func(n int64, source string, points ...collector.Point) collector.Series {
		for i := range points {
			points[i].Metric, points[i].Source, points[i].Seq = "loss", source, int64(i)
		}
		return collector.Series{Attempt: collector.Attempt{ID: "pod/" + string(rune('0'+n)), Started: time.Unix(n, 0)}, Metric: "loss", Points: points}
	}
	bar := func(n int64) collector.Series {
		return series(n, "stdout"+collector.ItemSource, collector.Point{Value: 0.01, Step: 1}, collector.Point{Value: 0.02, Step: 2})
	}
	tests := map[string]struct {
		series []collector.Series
		want   float64
	}{
		"the newer one has a value": {[]collector.Series{bar(0), series(1, "stdout", collector.Point{Value: 0.5, Step: 3})}, 0.5},
		"the newer one has items":   {[]collector.Series{series(0, "stdout", collector.Point{Value: 0.5, Step: 3}), bar(1)}, 0.5},
		"there are items alone":     {[]collector.Series{bar(0), bar(1)}, 0.01},
		"both are of one attempt":   {[]collector.Series{bar(0), series(0, "stdout", collector.Point{Value: 0.5, Step: 3})}, 0.5},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if o := collector.Observe(tc.series, "loss"); o.Min.Value != tc.want {
				t.Errorf("the least is %v, want %v", o.Min.Value, tc.want)
			}
			curve := collector.NewCurve(10)
			_ = collector.Curves(tc.series).Scan(t.Context(), "", []string{"loss"}, func(a collector.Attempt, p collector.Point) error {
				curve.Add(a, p)
				return nil
			})
			if first := curve.Buckets()[0]; first.Value != tc.want {
				t.Errorf("the curve begins with %v, want %v", first.Value, tc.want)
			}
		})
	}
}
