//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// withoutReports makes a folder of binaries in which the manager takes reports
// at another address than the one it gives out: every report is refused.
func withoutReports(t *testing.T) string {
	t.Helper()
	from, to := os.Getenv("VERNIER_BIN_DIR"), t.TempDir()
	for _, name := range []string{"vernier", "controlplane", "collector", "shim", "manager"} {
		target := name
		if name == "manager" {
			target = "manager.real"
		}
		if err := link(filepath.Join(from, name), filepath.Join(to, target)); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" --report-bind-address=127.0.0.1:0\n", filepath.Join(to, "manager.real"))
	if err := os.WriteFile(filepath.Join(to, "manager"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// link makes a hard link, or a copy on another file system.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(out, in)
	return err
}

// TestATrialGetsItsObjectiveWithoutTheReportService runs trials whose reports are
// refused from beginning to end: nothing reaches the store, and the summary in
// the sidecar's termination message gives each trial its value.
func TestATrialGetsItsObjectiveWithoutTheReportService(t *testing.T) {
	t.Setenv("VERNIER_BIN_DIR", withoutReports(t))
	i := up(t)
	all := jobExperiment{
		name: "refused", parallel: 4, max: 4, maxFailed: 1, // all at once: each waits 20 s for the service
		collector: `{collector: {kind: StdOut}}`,
		command:   `[sh, -c, "echo step=1 loss=7; echo step=2 loss=${trialParameters.x}; echo step=3 loss=8"]`,
	}
	experiment := all.object(t)
	strategies := []v1beta1.MetricStrategy{{Name: "loss", Value: v1beta1.ExtractByMin}}
	experiment.Spec.Objective.MetricStrategies = strategies
	if err := i.client.Create(t.Context(), experiment); err != nil {
		t.Fatal(err)
	}
	i.awaitEnd(t, "refused")
	trials := i.trials(t, "refused")
	if len(trials) != 4 {
		t.Errorf("%d trials", len(trials))
	}
	for _, trial := range trials {
		x := trial.Spec.ParameterAssignments[0].Value
		last := trial.Status.Conditions[len(trial.Status.Conditions)-1]
		t.Logf("%s: %s: %s", trial.Name, last.Type, last.Message)
		if !strings.Contains(last.Message, "3 points were not delivered") {
			t.Errorf("%s does not say that its reports were refused: %s", trial.Name, last.Message)
		}
		if last.Type != v1beta1.TrialSucceeded {
			t.Errorf("%s ended as %s: %s", trial.Name, last.Type, last.Message)
		}
		if trial.Status.Observation == nil || len(trial.Status.Observation.Metrics) != 1 {
			t.Errorf("%s observed %+v", trial.Name, trial.Status.Observation)
			continue
		}
		if m := trial.Status.Observation.Metrics[0]; m.Min != x || m.Max != "8" || m.Latest != "8" {
			t.Errorf("%s observed %+v, want a least loss of %s", trial.Name, m, x)
		}
	}
}
