package experiment

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestPlanResumes(t *testing.T) {
	done := trialsIn(succeeded, succeeded)
	tests := map[string]struct {
		exp  *v1beta1.Experiment
		want outcome
	}{
		"a raised maxTrialCount restarts": {
			anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(maxReason)), outcome{State: expRestart, Reason: againReason}},
		"FromVolume restarts too": {
			anExperiment(maxTrials(3), resume(v1beta1.FromVolume), endedBy(maxReason)), outcome{State: expRestart, Reason: againReason}},
		"a removed maxTrialCount restarts": {
			anExperiment(func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = nil }, resume(v1beta1.LongRunning), endedBy(maxReason)),
			outcome{State: expRestart, Reason: againReason}},
		"an unchanged maxTrialCount does not": {
			anExperiment(maxTrials(2), resume(v1beta1.LongRunning), endedBy(maxReason)), outcome{State: expDone, Reason: maxReason}},
		"Never does not": {
			anExperiment(maxTrials(3), resume(v1beta1.NeverResume), endedBy(maxReason)), outcome{State: expDone, Reason: maxReason}},
		"what reached its goal does not": {
			anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(goalReason)), outcome{State: expDone, Reason: goalReason}},
		"what failed does not": {
			anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(failReason)), outcome{State: expFailed, Reason: failReason}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := planned(tc.exp, done, findings{}, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(a)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if restarted := tc.want.State == expRestart; restarted != (a.status.CompletionTime == nil) {
				t.Errorf("completionTime = %v", a.status.CompletionTime)
			}
		})
	}
}

// A trial that is deleted after the end, or that the cache does not show yet
// after a restart of the manager, is no reason to train again.
func TestDeletedTrialsDoNotRestart(t *testing.T) {
	exp := anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(maxReason))
	exp.Status.Trials = 3
	for range 2 {
		a := planned(exp, trialsIn(succeeded, succeeded), findings{}, noon)
		if diff := cmp.Diff(outcome{State: expDone, Reason: maxReason}, outcomeOf(a)); diff != "" {
			t.Fatalf("plan (-want +got):\n%s", diff)
		}
		exp.Status = a.status
	}
	exp.Spec.MaxTrialCount = ptr.To[int32](4)
	if got := outcomeOf(planned(exp, trialsIn(succeeded, succeeded), findings{}, noon)); got.State != expRestart {
		t.Errorf("with a raised maxTrialCount: %+v", got)
	}
}

func TestRestartedExperimentRunsAndEndsAgain(t *testing.T) {
	exp := anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(maxReason))
	exp.Status = planned(exp, trialsIn(succeeded, succeeded), findings{}, noon).status
	a := planned(exp, trialsIn(succeeded, succeeded), findings{}, noon)
	if diff := cmp.Diff(outcome{Add: 1, First: 2, State: expRunning, Reason: runReason}, outcomeOf(a)); diff != "" {
		t.Fatalf("after the restart (-want +got):\n%s", diff)
	}
	exp.Status = a.status
	a = planned(exp, trialsIn(succeeded, succeeded, failed), findings{}, noon)
	if got := outcomeOf(a); got.State != expDone || got.Reason != maxReason {
		t.Fatalf("at the end: %+v", got)
	}
	var types []string
	for _, c := range a.status.Conditions {
		types = append(types, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	want := []string{"Created=True", "Restarting=True", "Running=False", "Succeeded=True"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
