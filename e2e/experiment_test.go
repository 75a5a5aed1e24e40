//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// jobExperiment is an Experiment with a parameter x, whose trials are Jobs of
// one container. Its texts are YAML in flow style.
type jobExperiment struct {
	name                     string
	objective                string // "" for the least loss
	algorithm                string // "" for sobol
	parallel, max, maxFailed int
	parameter                string // the kind of x and its space; "" for 0.1, 0.2, ... 0.9
	collector                string // "" for the default
	command                  string
	container                string // what the container has beside its command
	spec                     string // what the spec has besides, as lines with its indent of two
}

func (e jobExperiment) yaml() string {
	if e.collector != "" {
		e.spec += "  metricsCollectorSpec: " + e.collector + "\n"
	}
	if e.container != "" {
		e.container = ", " + e.container
	}
	return fmt.Sprintf(`
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: %s, namespace: default}
spec:
  objective: %s
  algorithm: {algorithmName: %s}
  parallelTrialCount: %d
  maxTrialCount: %d
  maxFailedTrialCount: %d
  parameters: [{name: x, %s}]
%s  trialTemplate:
    primaryContainerName: training
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
              - {name: training, image: %s, command: %s%s}
`, e.name, cmp.Or(e.objective, `{type: minimize, objectiveMetricName: loss}`), cmp.Or(e.algorithm, "sobol"),
		e.parallel, e.max, e.maxFailed,
		cmp.Or(e.parameter, `parameterType: double, feasibleSpace: {min: "0.1", max: "0.9", step: "0.1"}`),
		e.spec, trialImage(), e.command, e.container)
}

func (e jobExperiment) object(t *testing.T) *v1beta1.Experiment {
	t.Helper()
	var object v1beta1.Experiment
	if err := yaml.UnmarshalStrict([]byte(e.yaml()), &object); err != nil {
		t.Fatal(err)
	}
	return &object
}

// pythonCommand runs a program in Python, with x as its argument.
func pythonCommand(python, script string) string {
	return fmt.Sprintf(`[%s, %s, "${trialParameters.x}"]`, python, script)
}

// setContainer gives the container a command, word by word, and a working directory.
func setContainer(t *testing.T, e *v1beta1.Experiment, argv []string, dir string) {
	t.Helper()
	var job unstructured.Unstructured
	if err := json.Unmarshal(e.Spec.TrialTemplate.TrialSpec.Raw, &job); err != nil {
		t.Fatal(err)
	}
	c := job.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	c["command"], c["workingDir"] = argv, dir
	raw, err := json.Marshal(job.Object)
	if err != nil {
		t.Fatal(err)
	}
	e.Spec.TrialTemplate.TrialSpec.Raw = raw
}
