//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// katibSDK is Katib's SDK as the README says to install it.
const katibSDK = "kubeflow-katib==0.19.0 kubernetes<36"

// sdkCalls are the methods of Katib's client that testdata/sdk_calls.py makes, in
// its order.
var sdkCalls = []string{
	"create_experiment", "get_experiment", "list_experiments", "get_experiment_conditions", "is_experiment_created",
	"wait_for_experiment_condition", "is_experiment_succeeded", "is_experiment_running", "is_experiment_failed", "list_trials", "get_trial", "get_success_trial_details",
	"get_optimal_hyperparameters", "get_suggestion", "get_trial_metrics", "get_job_logs", "get_job_logs(follow)",
	"edit_experiment_budget", "is_experiment_restarting", "delete_experiment", "tune",
}

// TestKatibsSDK makes the calls of Katib's own SDK, unmodified, against an instance,
// from this host.
func TestKatibsSDK(t *testing.T) {
	leaveNoClusterDir(t)
	i := up(t)
	kubeconfig, err := i.vernier("kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	experiment := jobExperiment{
		name: "sdk", parallel: 2, max: 3, maxFailed: 1,
		command: `[sh, -c, "echo epoch=1 loss=7; echo epoch=2 loss=${trialParameters.x}"]`,
		spec:    "  resumePolicy: LongRunning\n",
	}.object(t)
	experiment.Spec.TrialTemplate.Retain = true // for get_job_logs, as with Katib
	experiment.Status = v1beta1.ExperimentStatus{}
	raw, err := yaml.Marshal(experiment)
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(t.TempDir(), "experiment.yaml")
	write(t, manifest, string(raw))
	cmd := exec.CommandContext(t.Context(), pythonWith(t, katibSDK), "testdata/sdk_calls.py", strings.TrimSpace(kubeconfig), manifest, i.dbManager(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	results := map[string]string{}
	for line := range strings.Lines(string(out)) {
		var result struct{ Call, Problem string }
		if json.Unmarshal([]byte(line), &result) == nil && result.Call != "" {
			results[result.Call] = result.Problem
		}
	}
	for _, call := range sdkCalls {
		t.Run(call, func(t *testing.T) {
			if problem, made := results[call]; !made || problem != "" {
				t.Errorf("made %v: %s", made, problem)
			}
		})
	}
	if len(results) != len(sdkCalls) {
		t.Errorf("%d calls, want %d:\n%s", len(results), len(sdkCalls), out)
	}
}

// leaveNoClusterDir removes empty directories by which Katib's SDK believes that it
// runs in a pod: instances before this version made them when they ran as root.
func leaveNoClusterDir(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"/var/run/secrets/kubernetes.io/serviceaccount", "/var/run/secrets/kubernetes.io"} {
		_ = os.Remove(dir) // what is not empty stays
	}
	if _, err := os.Stat("/var/run/secrets/kubernetes.io"); err == nil {
		t.Fatal("/var/run/secrets/kubernetes.io exists, so Katib's SDK takes this machine for a pod; remove it, or run the test elsewhere")
	}
}

// dbManager is the address that up and status print.
func (i *instance) dbManager(t *testing.T) string {
	t.Helper()
	out, err := i.vernier("status", "-o", "json")
	if err != nil {
		t.Fatalf("vernier status: %v\n%s", err, out)
	}
	var status struct {
		DBManager string `json:"dbManager"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		t.Fatal(err)
	}
	if table, err := i.vernier("status"); err != nil || status.DBManager == "" || !strings.Contains(table, status.DBManager) {
		t.Errorf("status does not show the DBManager %q: %v\n%s", status.DBManager, err, table)
	}
	return status.DBManager
}
