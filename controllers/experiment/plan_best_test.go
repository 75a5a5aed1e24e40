package experiment

import (
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestBest(t *testing.T) {
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		want   string
	}{
		"the smallest is best when minimizing":             {anExperiment(), []*v1beta1.Trial{loss1(0, "2"), loss1(1, "1"), loss1(2, "3")}, "exp-0001"},
		"the largest is best when maximizing":              {anExperiment(maximize), []*v1beta1.Trial{loss1(0, "2"), loss1(1, "1"), loss1(2, "3")}, "exp-0002"},
		"minimizing looks at the minimum":                  {anExperiment(), []*v1beta1.Trial{measured(0, "1", "9", "9"), measured(1, "2", "2", "2")}, "exp-0000"},
		"maximizing looks at the maximum":                  {anExperiment(maximize), []*v1beta1.Trial{measured(0, "1", "9", "1"), measured(1, "2", "2", "2")}, "exp-0000"},
		"the strategy latest looks at the end":             {anExperiment(strategy(v1beta1.ExtractByLatest)), []*v1beta1.Trial{measured(0, "1", "9", "9"), measured(1, "2", "2", "2")}, "exp-0001"},
		"the strategy max with minimize is odd but obeyed": {anExperiment(strategy(v1beta1.ExtractByMax)), []*v1beta1.Trial{measured(0, "1", "9", "9"), measured(1, "2", "2", "2")}, "exp-0001"},
		"a mean is where the trial's value is":             {anExperiment(strategy("mean-last-5")), []*v1beta1.Trial{valued(0, "3", "1"), valued(1, "2", "9")}, "exp-0001"},
		"the value at the best step, too":                  {anExperiment(strategy(v1beta1.ExtractByBestAtStep)), []*v1beta1.Trial{valued(0, "3", "1"), valued(1, "2", "9")}, "exp-0001"},
		"a mean that is not there falls back to latest":    {anExperiment(strategy("mean-last-5")), []*v1beta1.Trial{valued(0, "", "1"), valued(1, "2", "9")}, "exp-0000"},
		"an unavailable minimum falls back to latest":      {anExperiment(), []*v1beta1.Trial{measured(0, "unavailable", "unavailable", "1"), loss1(1, "2")}, "exp-0000"},
		"all unavailable is not best":                      {anExperiment(), []*v1beta1.Trial{measured(0, "unavailable", "unavailable", "unavailable")}, ""},
		"of equals the first is best":                      {anExperiment(), []*v1beta1.Trial{loss1(0, "1"), loss1(1, "1.0")}, "exp-0000"},
		"a trial without observation is not best":          {anExperiment(), trialsIn(succeeded), ""},
		"an early stopped trial can be best": {anExperiment(), func() []*v1beta1.Trial {
			pruned := loss1(0, "1")
			pruned.Status.Conditions = aTrial(0, earlyStop).Status.Conditions
			return []*v1beta1.Trial{pruned, loss1(1, "2")}
		}(), "exp-0000"},
		"exponents are numbers": {anExperiment(), []*v1beta1.Trial{loss1(0, "1e-3"), loss1(1, "0.002")}, "exp-0000"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := planned(tc.exp, tc.trials, findings{}, noon)
			if got := a.status.CurrentOptimalTrial.BestTrialName; got != tc.want {
				t.Errorf("best = %q, want %q", got, tc.want)
			}
		})
	}
}
