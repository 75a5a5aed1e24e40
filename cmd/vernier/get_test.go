package main

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestTrialsAreSorted(t *testing.T) {
	e := anExperiment()
	e.Spec.Parameters = append(e.Spec.Parameters, v1beta1.ParameterSpec{Name: "opt", ParameterType: v1beta1.ParameterTypeCategorical})
	var trials []v1beta1.Trial
	for i, loss := range []string{"9", "10", "", "NaN"} {
		trial := aTrial(i, v1beta1.TrialSucceeded, loss)
		if opt := []string{"sgd", "", "adam", "16"}[i]; opt != "" {
			trial.Spec.ParameterAssignments = append(trial.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: "opt", Value: opt})
		}
		trials = append(trials, trial)
	}
	trials[1].Status.Observation.Metrics[0] = v1beta1.Metric{Name: "acc", Min: "unavailable", Max: "unavailable", Latest: "unavailable"}
	tests := map[string]struct {
		by   string
		want []int
	}{
		"as they are numbered":                     {"number", []int{0, 1, 2, 3}},
		"the newest first":                         {"-number", []int{3, 2, 1, 0}},
		"by an objective, the best first":          {"objective", []int{0, 1, 3, 2}},
		"by a metric, as numbers":                  {"loss", []int{0, 1, 3, 2}},
		"the greatest first, what lacks it last":   {"-loss", []int{1, 0, 3, 2}},
		"by a metric that a trial has no value of": {"acc", []int{0, 3, 1, 2}},
		"by a parameter":                           {"-lr", []int{3, 2, 1, 0}},
		"by a category, numbers before words":      {"opt", []int{3, 2, 0, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := newExperimentView(e, trials)
			if err := sortTrials(&v, test.by); err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, trial := range v.Trials {
				got = append(got, trial.Number)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	v := newExperimentView(e, trials)
	if err := sortTrials(&v, "-acc"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"TRIAL", "STATE", "LOSS", "ACC", "LR", "OPT", "TIME"}, trialTable(v, v.Trials, noon).header); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	err := sortTrials(&v, "luck")
	if exitCode(err) != exitUsage {
		t.Fatalf("code %d, want %d", exitCode(err), exitUsage)
	}
	if diff := cmp.Diff("--sort luck: write number, objective, or one of loss, acc, lr, opt", err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListsInKubectlsForms(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	e, other := anExperiment(), anExperiment()
	e.UID, other.Name = "one", "other"
	first, second := aTrial(1, v1beta1.TrialSucceeded, "0.5"), aTrial(2, v1beta1.TrialRunning, "")
	for _, trial := range []*v1beta1.Trial{&first, &second} {
		trial.Labels[v1beta1.LabelExperiment] = e.Name
		trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, other, &first, &second).Build()
	open := func(context.Context, bool) (*session, error) { return &session{client: c, namespace: "default"}, nil }
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"names of experiments": {[]string{"experiments", "-o", "name"}, "experiment.kubeflow.org/charlm\nexperiment.kubeflow.org/other\n"},
		"names of trials":      {[]string{"trials", "charlm", "-o", "name"}, "trial.kubeflow.org/charlm-0001\ntrial.kubeflow.org/charlm-0002\n"},
		"a path of the list":   {[]string{"trials", "charlm", "-o", "jsonpath={.kind} {.items[*].metadata.name}"}, "TrialList charlm-0001 charlm-0002"},
		"a template":           {[]string{"experiments", "-o", "go-template={{range .items}}{{.metadata.name}} {{end}}"}, "charlm other "},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			cmd := newGetCommand(open)
			cmd.SetArgs(test.args)
			cmd.SetOut(&out)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
