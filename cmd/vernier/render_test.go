package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/trainer"
	"github.com/vernier-ml/vernier/trainer/kind"
)

func render(args ...string) (string, error) {
	var out bytes.Buffer
	root := newRootCommand(false)
	root.SetArgs(append([]string{"render", "tensorflow"}, args...))
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.Execute()
	return out.String(), err
}

// examples/tensorflow is what docs/distributed.md says how to make.
func TestRenderedTensorFlowIsTheExample(t *testing.T) {
	got, err := render("mnist", "--workers", "3", "--ps", "2", "--image", "train", "--range", "lr=0.001:0.1", "--",
		"python3", "/train.py", "--lr=${trialParameters.lr}")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../examples/tensorflow/mnist.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-example +rendered)\n%s", diff)
	}
}

// Each pod runs its command with its place in the cluster.
func TestRenderedTensorFlowTellsPodsTheirPlace(t *testing.T) {
	text, err := render("mnist", "--workers", "2", "--ps", "1", "--port", "99", "--", "printf", "%s\\n", "a b")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(text, "\n---\n")
	var experiment v1beta1.Experiment
	if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), &experiment); err != nil {
		t.Fatal(err)
	}
	template := experiment.Spec.TrialTemplate
	raw, err := json.Marshal(template.TrialSpec)
	if err != nil {
		t.Fatal(err)
	}
	job, err := trainer.Render(raw, nil, nil, trainer.Identity{Namespace: "default", Name: "exp-0"}, kind.For)
	if err != nil {
		t.Fatal(err)
	}
	containers, _, err := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	for index, want := range map[string]string{
		"0": "a b\n--job_name=ps\n--task_index=0\n--ps_hosts=exp-0-0.mnist:99\n--worker_hosts=exp-0-1.mnist:99,exp-0-2.mnist:99\n",
		"1": "a b\n--job_name=worker\n--task_index=0\n--ps_hosts=exp-0-0.mnist:99\n--worker_hosts=exp-0-1.mnist:99,exp-0-2.mnist:99\n",
		"2": "a b\n--job_name=worker\n--task_index=1\n--ps_hosts=exp-0-0.mnist:99\n--worker_hosts=exp-0-1.mnist:99,exp-0-2.mnist:99\n",
	} {
		var argv []string
		for _, word := range containers[0].(map[string]any)["command"].([]any) {
			argv = append(argv, strings.ReplaceAll(word.(string), "$("+trainer.VariableIndex+")", index)) // as the kubelet does
		}
		command := exec.Command(argv[0], argv[1:]...)
		got, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("pod %s (-want +got)\n%s", index, diff)
		}
	}
	if got := template.PrimaryPodLabels["batch.kubernetes.io/job-completion-index"]; got != "1" {
		t.Errorf("pod %s is measured, want the first worker", got)
	}
}

func TestRenderRefusesWhatCannotRun(t *testing.T) {
	for name, args := range map[string][]string{
		"no command":                 {"mnist"},
		"a name that is no hostname": {"Mnist", "--", "train"},
		"no worker":                  {"mnist", "--workers", "0", "--", "train"},
		"no size":                    {"mnist", "--volume-size", "big", "--", "train"},
		"a range without an end":     {"mnist", "--range", "lr=1", "--", "train", "${trialParameters.lr}"},
		"a range that nothing uses":  {"mnist", "--range", "lr=1:2", "--", "train"},
	} {
		if out, err := render(args...); exitCode(err) != exitUsage {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
