package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestATrialInThePlaceOfAnExperimentIsTold(t *testing.T) {
	tests := map[string][]string{
		"best": {"best", "mine/3"}, "get trials": {"get", "trials", "mine/3"}, "watch": {"watch", "mine/3"}, "edit": {"edit", "mine/3", "--max-trials", "4"},
		"suspend": {"suspend", "mine/3"}, "export": {"export", "mine/3"}, "plot": {"plot", "mine/3", "history"},
		"tensorboard": {"tensorboard", "mine/3"}, "delete": {"delete", "other", "mine/3"}, "replay": {"replay", "mine/3"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			root := newRootCommand(false)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"--home", filepath.Join(t.TempDir(), "home")}, args...))
			root.SetOut(&bytes.Buffer{})
			err := root.ExecuteContext(t.Context())
			if exitCode(err) != exitUsage {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, exitUsage)
			}
			want := "mine/3 is a trial of the experiment mine, and vernier " + name + " takes an experiment: write mine, or see the trial with vernier describe mine/3"
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestANameThatATrialHasIsToldWhenNoExperimentHasIt(t *testing.T) {
	numbered, other := aTrial(3, v1beta1.TrialSucceeded, "0.5"), aTrial(4, v1beta1.TrialSucceeded, "0.5")
	numbered.Labels[v1beta1.LabelExperiment] = "charlm"
	other.Name, other.Labels = "by-hand", map[string]string{v1beta1.LabelExperiment: "charlm"}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(anExperiment(), &numbered, &other).Build()
	tests := map[string]string{
		"charlm-0003": "charlm-0003 is no experiment, it is the trial charlm/3: vernier describe charlm/3 shows it",
		"by-hand":     "by-hand is no experiment, it is the trial charlm/by-hand: vernier describe charlm/by-hand shows it",
		"charm":       `no experiment "charm" in namespace "default": did you mean charlm? vernier get experiments --all-namespaces lists what exists`,
		"nothing":     `no experiment "nothing" in namespace "default": vernier get experiments --all-namespaces lists what exists`,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := loadExperiment(t.Context(), c, types.NamespacedName{Namespace: "default", Name: name})
			if exitCode(err) != exitNotFound {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, exitNotFound)
			}
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
