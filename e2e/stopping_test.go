//go:build e2e

package e2e

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// stoppingExperiment has eight trials with the losses 1 to 8 at each of 20 steps, two at a time.
func stoppingExperiment() jobExperiment {
	return jobExperiment{
		name:      "stopping",
		algorithm: "grid",
		parallel:  2,
		max:       8,
		parameter: `parameterType: int, feasibleSpace: {min: "1", max: "8"}`,
		command:   `[sh, -c, "i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo epoch=$i loss=${trialParameters.x}; sleep 0.3; done"]`,
		spec: `  seed: 1
  earlyStopping:
    algorithmName: medianstop
    algorithmSettings: [{name: min_trials_required, value: "2"}, {name: start_step, value: "2"}]
`,
	}
}

// TestEarlyStopping runs trials with flat curves under the median rule.
func TestEarlyStopping(t *testing.T) {
	i := upOrCluster(t)
	experiment := stoppingExperiment().object(t)
	experiment.Spec.TrialTemplate.Retain = true
	if err := i.client.Create(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	i.awaitEnd(t, "stopping")
	stopped, succeeded := 0, 0
	for _, trial := range i.trials(t, "stopping") {
		last := trial.Status.Conditions[len(trial.Status.Conditions)-1]
		x := trial.Spec.ParameterAssignments[0].Value
		t.Logf("%s, loss %s: %s: %s", trial.Name, x, last.Type, last.Message)
		if trial.Status.Observation == nil || trial.Status.Observation.Metrics[0].Latest != x {
			t.Errorf("%s observed %+v, want a loss of %s", trial.Name, trial.Status.Observation, x)
		}
		switch last.Type {
		case v1beta1.TrialEarlyStopped:
			stopped++
			if !strings.Contains(last.Message, "medianstop") || x == "1" {
				t.Errorf("%s with loss %s was stopped: %q", trial.Name, x, last.Message)
			}
			var job batchv1.Job
			if err := i.client.Get(t.Context(), client.ObjectKeyFromObject(&trial), &job); !apierrors.IsNotFound(err) && job.DeletionTimestamp == nil {
				t.Errorf("the job of %s is still there", trial.Name)
			}
		case v1beta1.TrialSucceeded:
			succeeded++
		default:
			t.Errorf("%s is %s", trial.Name, last.Type)
		}
	}
	if stopped == 0 || succeeded < 2 || stopped+succeeded != 8 {
		t.Errorf("%d trials were stopped and %d succeeded", stopped, succeeded)
	}
}
