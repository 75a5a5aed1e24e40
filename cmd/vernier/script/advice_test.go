package script

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestAdviceNamesTheFlagsOfTheCommandLine(t *testing.T) {
	made, err := aSpec(t, []string{"prog"}, "lr=log(1e-5,1e-1)", "opt=choice(sgd,adam)").Experiment()
	if err != nil {
		t.Fatal(err)
	}
	several := made.DeepCopy()
	several.Spec.Objective = nil
	several.Spec.Objectives = []v1beta1.ObjectiveMetric{
		{ObjectiveMetricName: "loss", Type: v1beta1.ObjectiveTypeMinimize}, {ObjectiveMetricName: "acc", Type: v1beta1.ObjectiveTypeMaximize},
	}
	file := made.DeepCopy()
	file.Annotations = nil
	tests := map[string]struct {
		of         *v1beta1.Experiment
		text, want string
	}{
		"a parameter":                      {made, "spec.parameters[0]: Required value: x", "-p 'lr=log(1e-5,1e-1)': Required value: x"},
		"a field of a parameter":           {made, "spec.parameters[0].feasibleSpace.min: Invalid value: x", "-p 'lr=log(1e-5,1e-1)', min: Invalid value: x"},
		"a value of a list":                {made, "spec.parameters[1].feasibleSpace.list[1]: Duplicate value", "-p 'opt=choice(sgd,adam)', list: Duplicate value"},
		"a parameter that is not there":    {made, "spec.parameters[7].name: x", "spec.parameters[7].name: x"},
		"the objective":                    {made, "spec.objective.objectiveMetricName: Invalid value", "--minimize loss: Invalid value"},
		"the goal":                         {made, "spec.objective.goal: Invalid value", "--goal: Invalid value"},
		"one of several objectives":        {several, "spec.objectives[1].objectiveMetricName: Invalid value", "--maximize acc: Invalid value"},
		"the filter":                       {made, "spec.metricsCollectorSpec.source.filter.metricsFormat[0]: Invalid value", "--filter: Invalid value"},
		"the collector":                    {made, "spec.metricsCollectorSpec.source.fileSystemPath.path: Invalid value", "--metrics: Invalid value"},
		"the algorithm":                    {made, "spec.algorithm.algorithmSettings[0]: x; spec.earlyStopping: y; spec.earlyStopping.algorithmSettings[1]: z", "--setting: x; --stopping: y; --stopping-setting: z"},
		"budgets":                          {made, "spec.maxTrialCount: x, spec.maxTrialDuration: y; spec.maxGPUHours: z", "--max-trials: x, --max-trial-duration: y; --max-gpu-hours: z"},
		"the name":                         {made, "metadata.name: Invalid value", "--name: Invalid value"},
		"a field that has no flag":         {made, "spec.resumePolicy: Invalid value", "spec.resumePolicy: Invalid value"},
		"a bare name of a field":           {made, "experiment train runs with maxTrialCount 24", "experiment train runs with --max-trials 24"},
		"a condition":                      {made, "spec.parameters[1].when.in[0]: x", "-p 'opt=choice(sgd,adam)', when: x"},
		"objectives in all":                {made, "spec.objectives: x", "--minimize loss: x"},
		"failures":                         {made, "have failed. Set maxFailedTrialCount to allow more. The newest", "have failed. vernier edit train --max-failed N allows more. The newest"},
		"a metric that was not printed":    {made, "or correct the metric's name or the filter in the experiment's metricsCollectorSpec", "or correct the metric's name or give a --filter"},
		"a pod that is gone":               {made, "(vernier logs t/1; on a cluster, set trialTemplate.retain to keep the pod)", "(vernier logs t/1)"},
		"a file's experiment keeps fields": {file, "spec.parameters[0]: Set maxFailedTrialCount to allow more", "spec.parameters[0]: Set maxFailedTrialCount to allow more"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, InFlags(test.of, test.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsWrongWithACommandLineNamesItsFlags(t *testing.T) {
	tests := map[string]struct {
		parameter, want string
	}{
		"a range that is empty":      {"lr=uniform(5,1)", "-p 'lr=uniform(5,1)', "},
		"a logarithm of nought":      {"lr=log(0,1)", "-p 'lr=log(0,1)', "},
		"a step that goes backwards": {"n=int(1,8,-1)", "-p 'n=int(1,8,-1)', step"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := aSpec(t, []string{"prog"}, test.parameter).Experiment()
			if err == nil || len(err.Error()) < len(test.want) || err.Error()[:len(test.want)] != test.want {
				t.Errorf("got %v, want an error that begins with %s", err, test.want)
			}
		})
	}
}
