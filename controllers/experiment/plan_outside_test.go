package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// What failed elsewhere says nothing of the program that runs here.
func TestImportedFailuresDoNotEndAnExperiment(t *testing.T) {
	exp := anExperiment(maxTrials(100))
	exp.Spec.TrialTemplate = nil
	trials := trialsIn(append(times(failuresMost, failed), created)...)
	for i, trial := range trials {
		if err := trial.SetLease(v1beta1.Lease{Worker: importer, Request: trial.Name, Attempt: 1, Expires: noon.Add(time.Hour)}); err != nil {
			t.Fatal(i, err)
		}
	}
	a := planned(exp, trials, findings{}, noon)
	if got := outcomeOf(a); got.State != expRunning || got.Add == 0 || len(got.Stop) > 0 {
		t.Errorf("while they are imported: %+v, %s", got, current(&a.status).Message)
	}
	all := anExperiment(maxTrials(failuresMost))
	a = planned(all, trials[:failuresMost], findings{}, noon)
	if c := current(&a.status); c.Type != expFailed || !strings.Contains(c.Message, trials[failuresMost-1].Name) {
		t.Errorf("when all trials of the budget have failed: %+v", c)
	}
}

// A stop does not wait for programs that are gone.
func TestAStopEndsTrialsWithoutAWorker(t *testing.T) {
	exp := anExperiment(func(e *v1beta1.Experiment) { e.Annotations = map[string]string{v1beta1.AnnotationEnd: v1beta1.EndStop} })
	exp.Spec.TrialTemplate = nil
	trials := trialsIn(succeeded, running, created)
	for i, expires := range []time.Time{noon, noon.Add(time.Minute), noon} {
		if err := trials[i].SetLease(v1beta1.Lease{Worker: "w", Attempt: 1, Seconds: 60, Expires: expires}); err != nil {
			t.Fatal(err)
		}
	}
	a := planned(exp, trials, findings{}, noon)
	if diff := cmp.Diff([]string{"exp-0002"}, outcomeOf(a).Stop); diff != "" {
		t.Errorf("asked to stop (-want +got):\n%s", diff)
	}
}
