package server

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
)

// A program may state any time for a point; one long ago is no lag.
func TestTheLagLeavesOutTimesOfLongAgo(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		times     []time.Time
		wantCount uint64
		wantSum   float64
	}{
		"a moment ago":                  {[]time.Time{noon.Add(-2 * time.Second)}, 1, 2},
		"the newest counts":             {[]time.Time{noon.Add(-2 * time.Hour), noon.Add(-3 * time.Second)}, 1, 3},
		"a clock that is ahead":         {[]time.Time{noon.Add(time.Minute)}, 1, 0},
		"just within":                   {[]time.Time{noon.Add(-time.Hour)}, 1, 3600},
		"longer ago":                    {[]time.Time{noon.Add(-time.Hour - time.Second)}, 0, 0},
		"1970":                          {[]time.Time{time.Unix(1, 0)}, 0, 0},
		"no time":                       {[]time.Time{{}}, 0, 0},
		"no point":                      {nil, 0, 0},
		"so long ago that it overflows": {[]time.Time{time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := newReportMetrics(nil, func() time.Time { return noon })
			if err != nil {
				t.Fatal(err)
			}
			var points []collector.Point
			for i, at := range tc.times {
				points = append(points, collector.Point{Metric: "loss", Source: "stdout", Seq: int64(i), Time: at})
			}
			m.ingest(collector.TrialID{UID: "u"}, "a", points, &vernierv1.ReportRequest{})
			var got dto.Metric
			if err := m.lag.Write(&got); err != nil {
				t.Fatal(err)
			}
			if h := got.GetHistogram(); h.GetSampleCount() != tc.wantCount || h.GetSampleSum() != tc.wantSum {
				t.Errorf("%d lags of %v s, want %d of %v s", h.GetSampleCount(), h.GetSampleSum(), tc.wantCount, tc.wantSum)
			}
		})
	}
}
