//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// pipelines are the jobs of Katib's examples with a step before the one that trains. It
// prints the metric too, and does not count. %[1]q is the image.
var pipelines = map[string]string{
	"argo-workflow": `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: all, templates: [
      {name: all, steps: [[{name: prepare, template: prepare}], [{name: model-training, template: model-training}]]},
      {name: prepare, container: {image: %[1]q, command: [sh, -c, "echo lr=${trialParameters.learningRate} momentum=${trialParameters.momentum}; echo loss=0.001"]}},
      {name: model-training, metadata: {labels: {katib.kubeflow.org/model-training: "true"}},
       container: {name: main, image: %[1]q, command: [sh, -c, "echo loss=0.75; echo loss=0.5"]}}]}}`,
	"tekton-pipeline-run": `{apiVersion: tekton.dev/v1beta1, kind: PipelineRun, spec: {pipelineSpec: {tasks: [
      {name: prepare, taskSpec: {steps: [{name: prepare, image: %[1]q, command: [sh, -c], args: ["echo lr=${trialParameters.learningRate} momentum=${trialParameters.momentum}; echo loss=0.001"]}]}},
      {name: model-training, runAfter: [prepare], taskSpec: {steps: [{name: model-training, image: %[1]q, command: [sh, -c], args: ["echo loss=0.75; echo loss=0.5"]}]}}]}}}`,
}

// TestPipelines runs experiments of pipelines under the controllers of Argo and Tekton.
func TestPipelines(t *testing.T) {
	i := cluster(t)
	if err := i.client.List(t.Context(), listOf(workflows)); err != nil {
		t.Skipf("NOT RUN: it needs Argo and Tekton: make e2e-operators installs them (%v)", err)
	}
	for name, job := range pipelines {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					i.showFailures(t, name)
					i.showEvents(t, name)
				}
			})
			raw, err := yaml.YAMLToJSON([]byte(fmt.Sprintf(job, trialImage())))
			if err != nil {
				t.Fatal(err)
			}
			e := exampleOf(t, name)
			e.Namespace, e.Spec.MaxTrialCount, e.Spec.ParallelTrialCount, e.Spec.Objective.Goal = "default", ptr.To[int32](4), ptr.To[int32](2), nil
			e.Spec.TrialTemplate.TrialSpec.Raw = raw
			if err := i.client.Create(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			i.awaitFinishedTrialsWithin(t, 5*time.Minute, name, 4)
			i.awaitEnd(t, name)
			trials := i.trials(t, name)
			checkTrials(t, name, 4, trials)
			for _, trial := range trials {
				if o := trial.Status.Observation; o == nil || o.Metrics[0].Min != "0.5" || o.Metrics[0].Max != "0.75" {
					t.Errorf("%s observed %+v, want losses of 0.5 and 0.75", trial.Name, o)
				}
			}
		})
	}
}
