package main

import (
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestTrialsThatReportToTheManagerAreOfTheirExperiment(t *testing.T) {
	tr := &v1beta1.Trial{}
	tr.Labels = map[string]string{v1beta1.LabelExperiment: "random"}
	if got := trialID(tr).Experiment; got != "random" {
		t.Errorf("experiment %q: the retention takes the trial for an experiment of its own", got)
	}
}
