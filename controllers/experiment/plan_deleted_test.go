package experiment

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Who tidies up after an experiment does not start it again.
func TestDeletedTrialsDoNotRestartWhatFailedOrUsedItsGPUs(t *testing.T) {
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		raise  func(*v1beta1.Experiment)
	}{
		"maxFailedTrialCount": {anExperiment(maxFailed(2)), trialsIn(succeeded, failed, failed),
			func(e *v1beta1.Experiment) { e.Spec.MaxFailedTrialCount = ptr.To[int32](3) }},
		"failures in a row": {anExperiment(maxTrials(100)), trialsIn(times(failuresMost, failed)...),
			func(e *v1beta1.Experiment) { e.Spec.MaxFailedTrialCount = ptr.To[int32](20) }},
		"all have failed": {anExperiment(maxTrials(3)), trialsIn(failed, failed, failed),
			func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = ptr.To[int32](4) }},
		"maxGPUHours": {anExperiment(gpuHours(2), resume(v1beta1.LongRunning)),
			[]*v1beta1.Trial{aTrial(0, succeeded), withGPUs(aTrial(1, succeeded), "2", time.Hour)},
			func(e *v1beta1.Experiment) { e.Spec.MaxGPUHours = ptr.To(3.0) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := tc.exp
			exp.Status = planned(exp, tc.trials, findings{}, noon).status
			if !exp.IsCompleted() {
				t.Fatalf("it has not ended: %+v", exp.LastCondition())
			}
			left := tc.trials[:len(tc.trials)-1]
			a := planned(exp, left, findings{}, noon)
			if exp.Status = a.status; !exp.IsCompleted() {
				t.Fatalf("it goes on once a trial is deleted: %+v", exp.LastCondition())
			}
			tc.raise(exp)
			if got := outcomeOf(planned(exp, left, findings{}, noon)); got.State != expRestart {
				t.Errorf("with a raised limit: %+v", got)
			}
		})
	}
}
