package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// TestWhatCannotStartIsShown is about a trial whose pod finds no node, which the
// controller says in the message of the trial's Running condition.
func TestWhatCannotStartIsShown(t *testing.T) {
	const why = "pod p finds no node (0/1 nodes are available: 1 Insufficient nvidia.com/gpu.): request less"
	stuck, runs := aTrial(1, v1beta1.TrialRunning, ""), aTrial(2, v1beta1.TrialRunning, "")
	stuck.Status.Conditions[1].Message = "Trial is running. " + why
	runs.Status.Conditions[1].Message = "Trial is running"
	view := newExperimentView(anExperiment(), []v1beta1.Trial{stuck, runs})

	var table, described bytes.Buffer
	if err := trialList(view, false, noon).write(&table, false); err != nil {
		t.Fatal(err)
	}
	describeExperiment(&described, view, noon)
	var plain plainDisplay
	outputs := map[string]string{
		"get trials": table.String(),
		"describe":   described.String(),
		"live":       strings.Join(frame(view, noon, size{width: 300, height: 30}, false), "\n"),
		"plain":      strings.Join(plain.update(view, noon), "\n"),
	}
	for name, text := range outputs {
		t.Run(name, func(t *testing.T) {
			requireText(t, text, why)
			if strings.Contains(text, "Trial is running") {
				t.Errorf("it is said to run:\n%s", text)
			}
		})
	}
	requireText(t, table.String(), "Waiting", "Running")
	if again := plain.update(view, noon); len(again) > 0 {
		t.Errorf("said again: %q", again)
	}
	if now := newExperimentView(anExperiment(), []v1beta1.Trial{runs}); strings.Contains(strings.Join(frame(now, noon, size{width: 100, height: 30}, false), ""), "Waiting") {
		t.Error("a trial that runs waits")
	}
}
