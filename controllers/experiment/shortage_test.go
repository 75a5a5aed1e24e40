package experiment

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestWhyThereAreFewerTrialsThanAskedFor(t *testing.T) {
	of := func(states ...v1beta1.TrialConditionType) (trials []*v1beta1.Trial) {
		for i, state := range states {
			trials = append(trials, aTrial(i, state))
		}
		return trials
	}
	suspended := func(e *v1beta1.Experiment) { e.Spec.Suspend = true }
	stopping := func(e *v1beta1.Experiment) {
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, v1beta1.AnnotationEnd, "drain")
	}
	deleted := func(e *v1beta1.Experiment) { e.DeletionTimestamp = &metav1.Time{Time: noon} }
	tests := map[string]struct {
		exp         *v1beta1.Experiment
		trials      []*v1beta1.Trial
		added       int
		found       findings
		reason, why string
	}{
		"it has ended":                       {exp: anExperiment(endedBy(v1beta1.ReasonExperimentGoalReached)), reason: ReasonEnded},
		"it is deleted":                      {exp: anExperiment(deleted), reason: ReasonEnded, why: "deleted"},
		"something cannot be read":           {exp: anExperiment(), found: findings{trouble: "no ConfigMap"}, reason: ReasonHeldUp, why: "no ConfigMap"},
		"it was told to stop":                {exp: anExperiment(stopping, suspended), reason: ReasonStopping, why: "was stopped"},
		"it is suspended, and nothing runs":  {exp: anExperiment(suspended), reason: ReasonSuspended, why: "spec.suspend"},
		"the last trial of the budget runs":  {exp: anExperiment(maxTrials(2)), trials: of(succeeded, running), reason: ReasonBudget, why: "all 2 trials of maxTrialCount exist, and 1 of them have not ended"},
		"this call took the last one":        {exp: anExperiment(maxTrials(2)), trials: of(succeeded), added: 1, reason: ReasonBudget, why: "all 2 trials"},
		"as many run as may":                 {exp: anExperiment(), trials: of(running, running, running), reason: ReasonParallel, why: "3 trials have not ended, and parallelTrialCount allows 3"},
		"with those of this call":            {exp: anExperiment(), trials: of(running), added: 2, reason: ReasonParallel, why: "3 trials have not ended"},
		"new trials wait after failures":     {exp: anExperiment(), trials: of(failed, failed, failed), reason: ReasonFailures, why: "last 3 trials have failed"},
		"more than are made in one question": {exp: anExperiment(unlimited, parallel(500)), added: addMost, reason: ReasonMore},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := shortage(tc.exp, tallied(tc.exp, tc.trials, noon), tc.added, tc.found)
			if got.Reason != tc.reason || !strings.Contains(got.Why, tc.why) {
				t.Errorf("got %+v, want %s: %s", got, tc.reason, tc.why)
			}
		})
	}
}

func TestOneWhoAsksIsToldThatTheAlgorithmWaits(t *testing.T) {
	c := newCluster(t, "pbt", 0, parallel(50), func(e *v1beta1.Experiment) {
		e.Spec.TrialTemplate = nil
		e.Spec.Algorithm.AlgorithmSettings = []v1beta1.AlgorithmSetting{{Name: "n_population", Value: "5"}, {Name: "truncation_threshold", Value: "0.2"}, {Name: "suggestion_trial_dir", Value: "/ckpt"}}
	})
	h, err := c.HandOut(t.Context(), client.ObjectKeyFromObject(c.exp), 50, v1beta1.Lease{Worker: "w", Request: "1", Seconds: 60})
	if err != nil || len(h.Trials) != 5 || h.Reason != ReasonResults {
		t.Errorf("%d trials, %+v, %v", len(h.Trials), h.Shortage, err)
	}
}
