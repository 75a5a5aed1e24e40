package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestATrialIsFoundByWhatNamesIt(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	e := anExperiment()
	e.UID = "one"
	first, second := aTrial(1, v1beta1.TrialSucceeded, "0.5"), aTrial(2, v1beta1.TrialRunning, "")
	for _, trial := range []*v1beta1.Trial{&first, &second} {
		trial.Labels[v1beta1.LabelExperiment] = e.Name
		trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(withBest(e, first), &first, &second).Build()
	tests := map[string]struct {
		text string
		want string // the name, or a part of the error
		code int
	}{
		"a number":           {"charlm/2", "charlm-0002", 0},
		"a name":             {"charlm/charlm-0001", "charlm-0001", 0},
		"the best":           {"charlm/best", "charlm-0001", 0},
		"the latest":         {"charlm/latest", "charlm-0002", 0},
		"no such trial":      {"charlm/7", "it has 2, charlm-0001 to charlm-0002", exitNotFound},
		"no such experiment": {"charml/1", "charml", exitNotFound},
		"an experiment":      {"charlm", "name a trial: charlm/12", exitUsage},
		"too many slashes":   {"charlm/1/2", "does not name", exitUsage},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := (&session{client: c, namespace: "default"}).findTrial(t.Context(), tc.text)
			said := found.Name
			if err != nil {
				said = err.Error()
			}
			if exitCode(err) != tc.code || !strings.Contains(said, tc.want) {
				t.Errorf("code %d, %q, want %d and %q", exitCode(err), said, tc.code, tc.want)
			}
		})
	}
}

// The status keeps the best trial after its deletion.
func TestTheBestTrialIsUsedAfterItsDeletion(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	e := withBest(anExperiment(), aTrial(1, v1beta1.TrialSucceeded, "0.25"))
	open := func(context.Context, bool) (*session, error) {
		return &session{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(e).Build(), namespace: e.Namespace}, nil
	}
	for name, c := range map[string]struct {
		run  func(out io.Writer) error
		says string
	}{
		"described": {func(out io.Writer) error { return describe(t.Context(), "charlm/best", "text", out, open) }, "0.25"},
		"explained": {func(out io.Writer) error {
			found, err := explain(t.Context(), "charlm/best", open)
			fmt.Fprint(out, found.Why)
			return err
		}, "loss=0.25"},
		"tried again": {func(out io.Writer) error { return enqueue(t.Context(), "charlm/best", nil, streams{out: out}, open) }, "lr=0.1 next"},
		"printed":     {func(out io.Writer) error { return best(t.Context(), "charlm", "args", false, out, open) }, "--lr=0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := c.run(&out); err != nil {
				t.Fatal(err)
			}
			requireText(t, out.String(), c.says)
		})
	}
}

// What best prints of the best one, describe prints of any.
func TestDescribePrintsTheParametersOfAnyTrial(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	e, trial := anExperiment(), aTrial(3, v1beta1.TrialSucceeded, "0.5")
	e.UID = "1"
	trial.Labels[v1beta1.LabelExperiment] = e.Name
	trial.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("Experiment"))}
	s := &session{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(e, &trial).Build(), namespace: e.Namespace}
	open := func(context.Context, bool) (*session, error) { return s, nil }
	var out bytes.Buffer
	if err := describe(t.Context(), "charlm/3", "args", &out, open); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("--lr=0.3\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := describe(t.Context(), "charlm", "args", &out, open); exitCode(err) != exitUsage {
		t.Errorf("of an experiment: %v", err)
	}
}
