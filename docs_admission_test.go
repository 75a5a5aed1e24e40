//go:build e2e

package vernier_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"
)

// anExperiment is what a page leaves out when it shows a part of an Experiment.
const anExperiment = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  maxTrialCount: 10
  parameters: [{name: lr, parameterType: double, feasibleSpace: {min: "0.001", max: "0.1"}}]
  trialTemplate:
    primaryContainerName: training
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec: {template: {spec: {restartPolicy: Never, containers: [{name: training, image: any, command: [train]}]}}}
`

// admits asks the API server of an instance, in a dry run, whether it takes the
// objects of the pages: unknown fields are errors.
func (r *reader) admits(t *testing.T, blocks []block) {
	dir := t.TempDir()
	env := r.env(t, filepath.Join(dir, "home"))
	t.Cleanup(func() { down(t, dir, env) })
	up := exec.CommandContext(t.Context(), "bash", "-c", "vernier up >&2 && vernier kubeconfig")
	up.Env = env
	out, err := up.Output()
	if err != nil {
		t.Fatalf("%v: %v", up, err)
	}
	log.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	server, err := client.New(config, client.Options{DryRun: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	server = client.WithFieldValidation(server, metav1.FieldValidationStrict)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, b := range blocks {
		documents, err := b.documents()
		if err != nil {
			t.Error(err)
		}
		for _, document := range documents {
			object := complete(t, b, document)
			if err := server.Create(ctx, object); err != nil {
				t.Errorf("%s: %v\n%s", b.at(), err, b.text)
			}
		}
	}
}

// complete makes an object of a part of an Experiment: of one that begins at the
// spec, or at one of its fields.
func complete(t *testing.T, b block, part map[string]any) *unstructured.Unstructured {
	t.Helper()
	if part["kind"] == nil {
		if part["spec"] == nil && part["metadata"] == nil {
			part = map[string]any{"spec": part}
		}
		var whole map[string]any
		if err := yaml.Unmarshal([]byte(anExperiment), &whole); err != nil {
			t.Fatal(err)
		}
		spec := whole["spec"].(map[string]any)
		shown, _ := part["spec"].(map[string]any)
		if shown["objectives"] != nil {
			delete(spec, "objective")
		}
		if shown["nasConfig"] != nil {
			delete(spec, "parameters")
		}
		merge(whole, part)
		bind(spec)
		part = whole
	}
	object := &unstructured.Unstructured{Object: part}
	if object.GetName() == "" {
		object.SetName("block")
	}
	if object.GetNamespace() == "" && !strings.HasPrefix(object.GetKind(), "Cluster") {
		object.SetNamespace("default")
	}
	return object
}

// bind gives the template each parameter as a flag, unless the page shows how.
func bind(spec map[string]any) {
	template := spec["trialTemplate"].(map[string]any)
	parameters, _ := spec["parameters"].([]any)
	if template["trialParameters"] != nil || parameters == nil {
		return
	}
	var bound, command []any
	for _, p := range parameters {
		name := p.(map[string]any)["name"]
		bound = append(bound, map[string]any{"name": name, "reference": name})
		command = append(command, fmt.Sprintf("--%s=${trialParameters.%s}", name, name))
	}
	template["trialParameters"] = bound
	pod := template["trialSpec"].(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	pod["containers"].([]any)[0].(map[string]any)["args"] = command
}

// merge lays a part over a whole; lists are replaced.
func merge(whole, part map[string]any) {
	for key, value := range part {
		inner, ok := value.(map[string]any)
		below, has := whole[key].(map[string]any)
		if ok && has {
			merge(below, inner)
		} else {
			whole[key] = value
		}
	}
}
