package trial

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// byStrategies has the strategies of loss and accuracy.
func byStrategies(loss, accuracy v1beta1.MetricStrategyType) func(*v1beta1.Trial) {
	return func(t *v1beta1.Trial) {
		t.Spec.Objective.MetricStrategies = []v1beta1.MetricStrategy{{Name: "loss", Value: loss}, {Name: "accuracy", Value: accuracy}}
	}
}

func TestTheStatusShowsTheValueByStrategy(t *testing.T) {
	loss, accuracy := points("loss", 3, 1, 2), points("accuracy", 0.5, 0.6, 0.7)
	for i := range accuracy.Points {
		accuracy.Points[i].Source = "file:/log"
	}
	tests := map[string]struct {
		loss, accuracy         v1beta1.MetricStrategyType
		wantLoss, wantAccuracy string
		summary                [2]string
	}{
		"Katib's need no more":      {"min", "max", "", "", [2]string{"", ""}},
		"the mean of the last two":  {"mean-last-2", "mean-last-1", "1.5", "0.7", [2]string{"2", "0.7"}},
		"the value at the best one": {"best-at-step", "best-at-step", "1", "0.6", [2]string{"1", "unavailable"}},
		"one of each":               {"latest", "best-at-step", "", "0.6", [2]string{"", "unavailable"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := aTrial(byStrategies(tc.loss, tc.accuracy)).Spec.Objective
			series := []collector.Series{loss, accuracy}
			stored, err := collector.Reduce(t.Context(), collector.Curves(series), "", asksOf(o)...)
			if err != nil {
				t.Fatal(err)
			}
			whole := observation(o, best(o, data{final: true, stored: stored}))
			left := observation(o, best(o, data{condensed: true, summary: series}))
			got := []string{whole.Metrics[0].Value, whole.Metrics[1].Value, left.Metrics[0].Value, left.Metrics[1].Value}
			if diff := cmp.Diff([]string{tc.wantLoss, tc.wantAccuracy, tc.summary[0], tc.summary[1]}, got); diff != "" {
				t.Errorf("values, then those of a summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCurvesThatStay(t *testing.T) {
	trial := func(namespace, name string, ended bool) v1beta1.Trial {
		var opts []func(*v1beta1.Trial)
		if ended {
			opts = append(opts, func(t *v1beta1.Trial) { t.MarkSucceeded("", metav1.NewTime(noon)) })
		}
		tr := *aTrial(opts...)
		tr.Namespace, tr.Name, tr.UID = namespace, name, types.UID(namespace+"/"+name)
		return tr
	}
	experiment := func(namespace, best string) v1beta1.Experiment {
		e := v1beta1.Experiment{}
		e.Namespace = namespace
		e.Status.CurrentOptimalTrial.BestTrialName = best
		return e
	}
	several := experiment("a", "e-0001")
	several.Status.ParetoTrialList = []string{"e-0001", "e-0003"}
	keep := kept([]v1beta1.Trial{
		trial("a", "e-0000", true), trial("a", "e-0001", true), trial("a", "e-0002", false), trial("a", "e-0003", true), trial("b", "e-0001", true),
	}, []v1beta1.Experiment{several, experiment("b", ""), experiment("b", "e-0000")})
	for uid, want := range map[string]bool{"a/e-0000": false, "a/e-0001": true, "a/e-0002": true, "a/e-0003": true, "b/e-0001": false, "b/e-0000": false} {
		if got := keep(collector.TrialID{UID: uid}); got != want {
			t.Errorf("%s is kept: %v", uid, got)
		}
	}
}
