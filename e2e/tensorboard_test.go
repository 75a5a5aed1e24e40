//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// boardTemplate is an experiment: its name, collector, the rest of its container, and a
// folder of the machine.
const boardTemplate = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: %[1]s, namespace: default}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: sobol}
  maxTrialCount: 2
  resumePolicy: LongRunning
  metricsCollectorSpec: %[2]s
  parameters: [{name: lr, parameterType: double, feasibleSpace: {min: "0.01", max: "0.1"}}]
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}, {name: trial, reference: "${trialSpec.Name}"}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            volumes: [{name: runs, hostPath: {path: %[4]s}}]
            containers: [{name: main, image: host, %[3]s}]
`

// TestTensorBoardShowsAnExperiment shows experiments in a real TensorBoard: the
// parameters and results of trials that print and of those that write event files, and
// trials that come while it runs.
func TestTensorBoardShowsAnExperiment(t *testing.T) {
	python := pythonWith(t, "tensorboard setuptools")
	program, err := filepath.Abs(filepath.Join("testdata", "katib_example.py"))
	if err != nil {
		t.Fatal(err)
	}
	asks, err := filepath.Abs(filepath.Join("..", "collector", "source", "events", "testdata", "hparams.py"))
	if err != nil {
		t.Fatal(err)
	}
	i, volume := up(t), t.TempDir()
	collectors := map[string]string{
		"printed": `{collector: {kind: StdOut}}`,
		"written": `{collector: {kind: TensorFlowEvent}, source: {fileSystemPath: {path: /summaries/test, kind: Directory}}}`,
	}
	run := fmt.Sprintf(`command: [python3, %s, --epochs=2, "--lr=${trialParameters.lr}"`, program)
	containers := map[string]string{
		"printed": run + `, "--trial=${trialParameters.trial}"]`,
		"written": run + `, --log-path=/summaries], volumeMounts: [{name: runs, mountPath: /summaries, subPath: "${trialParameters.trial}"}]`,
	}
	for name, collector := range collectors {
		t.Run(name, func(t *testing.T) {
			manifest := fmt.Sprintf(boardTemplate, name, collector, containers[name], volume)
			folder := i.runsOf(t, name, manifest)
			linked, err := os.Readlink(filepath.Join(folder, name+"-0000", "events.out.tfevents.1700000000.stand-in"))
			if want := name == "written"; (err == nil) != want || want && !strings.HasPrefix(linked, volume) {
				t.Errorf("its event file is the link %q, %v", linked, err)
			}
			i.checkBoard(t, name, python, asks, folder, 2)
		})
	}
	t.Run("trials that come later", func(t *testing.T) { i.checkLaterTrials(t, "printed", python) })
}

// runsOf runs an experiment and returns the folder with its runs.
func (i *instance) runsOf(t *testing.T, name, manifest string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "experiment.yaml")
	write(t, file, manifest)
	if out, err := i.vernier("run", "-f", file, "--timeout", "3m"); err != nil {
		i.showFailures(t, name)
		t.Fatalf("vernier run: %v\n%s", err, out)
	}
	folder := filepath.Join(t.TempDir(), "runs")
	if out, err := i.vernier("tensorboard", name, "--logdir", folder, "--logdir-only"); err != nil || strings.TrimSpace(out) != folder {
		t.Fatalf("vernier tensorboard: %v\n%s", err, out)
	}
	return folder
}

// checkLaterTrials holds that a TensorBoard that runs gets the trials that an experiment
// adds.
func (i *instance) checkLaterTrials(t *testing.T, name, python string) {
	folder := filepath.Join(t.TempDir(), "runs")
	t.Setenv("PATH", filepath.Dir(python)+":"+os.Getenv("PATH"))
	shown := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("VERNIER_BIN_DIR"), "vernier"), "--home", i.home,
		"tensorboard", name, "--logdir", folder, "--", "--port", "0")
	// An interrupt is passed on to TensorBoard; without vernier it would stay.
	shown.Cancel = func() error { return shown.Process.Signal(os.Interrupt) }
	shown.WaitDelay = 20 * time.Second
	var out strings.Builder
	shown.Stdout, shown.Stderr = &out, &out
	if err := shown.Start(); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceValue(shown.Wait)
	t.Cleanup(func() { _ = ended() }) // of a test that failed: its context has ended
	e := &v1beta1.Experiment{}
	if err := i.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, e); err != nil {
		t.Fatal(err)
	}
	if err := i.client.Patch(t.Context(), e, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"maxTrialCount": 3}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(context.Context) error {
		curves, err := filepath.Glob(filepath.Join(folder, name+"-0002", "*.vernier-run.*.0"))
		if err != nil || len(curves) == 0 {
			return fmt.Errorf("the new trial has %v, %v", curves, err)
		}
		return nil
	})
	i.awaitEnd(t, name)
	if err := shown.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := ended(); err != nil || !strings.Contains(out.String(), "TensorBoard ") {
		t.Errorf("it ended with %v\n%s", err, out.String())
	}
}

// checkBoard holds that the HPARAMS tab over a folder lists the trials of an experiment
// with their parameters and last losses.
func (i *instance) checkBoard(t *testing.T, name, python, asks, folder string, trials int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, asks, folder, fmt.Sprint(trials))
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Groups []struct {
			Name    string
			Hparams map[string]any
			Metrics []struct {
				Name  struct{ Tag string }
				Value float64
			} `json:"metricValues"`
			Sessions []struct{ Status string }
		}
	}
	if err := json.Unmarshal(raw, &shown); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, g := range shown.Groups {
		for _, m := range g.Metrics {
			if m.Name.Tag == "loss" {
				got[g.Name] = fmt.Sprintf("%.4v %.4v %s", g.Hparams["lr"], m.Value, g.Sessions[0].Status)
			}
		}
	}
	for _, trial := range i.trials(t, name) {
		var lr, loss float64
		fmt.Sscan(trial.Spec.ParameterAssignments[0].Value, &lr)
		fmt.Sscan(trial.Status.Observation.Metrics[0].Latest, &loss)
		if want := fmt.Sprintf("%.4v %.4v STATUS_SUCCESS", lr, loss); got[trial.Name] != want {
			t.Errorf("%s is shown as %q, want %q", trial.Name, got[trial.Name], want)
		}
	}
}
