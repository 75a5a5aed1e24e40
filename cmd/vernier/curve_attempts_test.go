package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// The rows of two metrics go together by the number of the attempt, also where
// the first attempt had one of them only.
func TestAttemptsHaveTheSameNumberInEachCurve(t *testing.T) {
	s, trial := curves(t)
	second := collector.Attempt{ID: "pod/1", Started: noon.Add(time.Hour)}
	late := collector.Point{Metric: "late", Step: 7, Value: 1, Source: "late"}
	if err := s.Append(t.Context(), trial, second, []collector.Point{late}); err != nil {
		t.Fatal(err)
	}
	const header = "metric,attempt,step,time,value,min,max,points\n"
	tests := map[string]struct {
		metric string
		points int
		want   string
	}{
		"each point": {"late", 0, header + "late,2,7,,1,1,1,1\n"},
		"condensed":  {"late", 2, header + "late,2,7,,1,1,1,1\n"},
		"the other":  {"acc", 0, header + "acc,1,,,NaN,NaN,NaN,1\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, said bytes.Buffer
			o := curveOptions{output: "csv", points: tc.points}
			if err := o.print(t.Context(), s, trial, []string{tc.metric}, streams{out: &out, err: &said}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}
