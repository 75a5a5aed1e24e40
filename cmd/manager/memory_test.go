package main

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestTheMemoryLimitFollowsTheContainers(t *testing.T) {
	for text, want := range map[string]int64{"1073741824\n": 805306368, "max\n": defaultMemory} {
		file := filepath.Join(t.TempDir(), "memory.max")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := memoryLimit(file); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := memoryLimit(filepath.Join(t.TempDir(), "none")); got != defaultMemory {
		t.Errorf("without a file: %d", got)
	}
}

func TestTheCacheKeepsOfEndedTrialsTheKindOfTheJob(t *testing.T) {
	const job = `{"apiVersion":"batch/v1","kind":"Job","spec":{"a":"long script"}}`
	for name, want := range map[string]string{"running": job, "ended": `{"kind":"Job","apiVersion":"batch/v1"}`} {
		trial := &v1beta1.Trial{Spec: v1beta1.TrialSpec{RunSpec: &runtime.RawExtension{Raw: []byte(job)}}}
		trial.MarkRunning("", metav1.Now())
		if name == "ended" {
			trial.MarkSucceeded("", metav1.Now())
		}
		got, err := slimTrial(trial)
		if err != nil {
			t.Fatal(err)
		}
		if raw := string(got.(*v1beta1.Trial).Spec.RunSpec.Raw); raw != want {
			t.Errorf("%s: %s, want %s", name, raw, want)
		}
	}
}
