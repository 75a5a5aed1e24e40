package trial

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// used is what a trial used at some seconds after its start.
func used(metric string, at map[int]float64) collector.Series {
	s := collector.Series{Attempt: collector.Attempt{ID: collector.SystemAttempt, Started: noon}, Metric: metric}
	for second := range 1000 {
		if v, ok := at[second]; ok {
			s.Points = append(s.Points, collector.Point{Metric: metric, Value: v, Step: int64(second), Time: noon.Add(time.Duration(second) * time.Second), Seq: int64(second)})
		}
	}
	return s
}

func TestTheUseOfAMachineIsNoResult(t *testing.T) {
	loss := points("loss", 3, 1, 2)
	for name, tc := range map[string]struct {
		series []collector.Series
		final  bool
		want   data
	}{
		"a trial that has reported everything has, whatever is sampled of it": {
			series: []collector.Series{loss, used("system/cpu_cores", map[int]float64{10: 2})}, final: true,
			want: data{final: true, attempted: true, stored: stored(loss), usage: []v1beta1.Metric{{Name: "system/cpu_cores", Min: "2", Max: "2", Latest: "2", Value: "2"}}},
		},
		"a trial that reported nothing has not, and what is sampled is not named": {
			series: []collector.Series{used("system/gpu0.utilization_percent", map[int]float64{10: 100, 20: 100, 120: 40})},
			// 100 for 20 s, 40 for 100 s.
			want: data{usage: []v1beta1.Metric{{Name: "system/gpu0.utilization_percent", Min: "40", Max: "100", Latest: "40", Value: "50"}}},
		},
		"a program's own metric of such a name is not the machine's": {
			series: []collector.Series{points("system/gpu0.utilization_percent", 1, 2)},
			want:   data{attempted: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			trial := aTrial()
			got, err := New(Options{Store: storeWith(t, trial, tc.final, tc.series...)}).measure(t.Context(), trial, nil, reading{over: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(data{}), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheUseIsInTheStatusOfATrialThatHasEnded(t *testing.T) {
	usage := []v1beta1.Metric{{Name: "system/memory_gib", Max: "3"}}
	trial := aTrial()
	d := finish(trial, seen{trial: trial, data: data{usage: usage}}, noon)
	if diff := cmp.Diff(usage, d.status.Usage); diff != "" {
		t.Error(diff)
	}
}
