//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"sigs.k8s.io/yaml"
)

// TestMain is the test binary, and, called with "push" or "serve", a training program
// that pushes its metrics, or whose endpoint is scraped.
func TestMain(m *testing.M) {
	programs := map[string]func(ctx context.Context, x string) error{"push": push, "serve": serve, "rank": rank}
	if len(os.Args) == 3 && programs[os.Args[1]] != nil {
		if err := programs[os.Args[1]](context.Background(), os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

// run runs the tests, which share what is slow to make.
func run(m *testing.M) (code int) {
	var err error
	if venvs, err = os.MkdirTemp("", "vernier-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(venvs)
	if err := os.Chmod(venvs, 0o755); err != nil { // programs of other users start from it
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code = m.Run()
	if err := writeReport(os.Getenv("VERNIER_E2E_REPORT")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// push reports two steps of loss to the collector's socket.
func push(ctx context.Context, x string) error {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", os.Getenv("VERNIER_PUSH_SOCKET"))
	}}}
	for step, loss := range []string{"7", x} {
		body := fmt.Sprintf(`{"loss": %s, "step": %d}`, loss, step)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://collector/report", strings.NewReader(body))
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		answer, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("push: %s: %s", response.Status, answer)
		}
	}
	return nil
}

// serve has a loss of 7 until it is scraped, then x until it is scraped again.
func serve(ctx context.Context, x string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:"+os.Getenv("VERNIER_METRICS_PORT"))
	if err != nil {
		return err
	}
	server, served := &http.Server{}, make(chan struct{}, 2)
	losses := make(chan string, 2)
	losses <- "7"
	losses <- x
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case loss := <-losses:
			fmt.Fprintf(w, "loss %s\n", loss)
			served <- struct{}{}
		default:
			fmt.Fprintf(w, "loss %s\n", x)
		}
	})
	down := make(chan error, 1)
	go func() {
		<-served
		<-served
		down <- server.Shutdown(ctx) // it waits for what is being answered
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-down
}

// collectorKinds are programs that end at once, which is the hardest case: what they
// wrote last must be read. self is the test binary.
func collectorKinds(self string) map[string]jobExperiment {
	kinds := map[string]struct{ collector, command string }{
		"stdout": {`{collector: {kind: StdOut}}`, `[sh, -c, "echo loss=7; printf loss=${trialParameters.x}"]`},
		"file-text": {
			`{collector: {kind: File}, source: {fileSystemPath: {path: /nowhere/on/the/host/metrics.log, kind: File, format: TEXT}}}`,
			`[sh, -c, "echo loss=7 > /nowhere/on/the/host/metrics.log; echo loss=${trialParameters.x} >> /nowhere/on/the/host/metrics.log"]`,
		},
		"file-json": {
			`{collector: {kind: File}, source: {fileSystemPath: {path: /var/log/katib/metrics.json, kind: File, format: JSON}}}`,
			`[sh, -c, 'echo "{\"loss\": ${trialParameters.x}, \"step\": 1}" > /var/log/katib/metrics.json']`,
		},
		"filter": {
			`{collector: {kind: StdOut}, source: {filter: {metricsFormat: ["(\\w+): ([-+.0-9]+)"]}}}`,
			`[sh, -c, "echo \"loss: ${trialParameters.x}\""]`,
		},
		"push":       {`{collector: {kind: Push}}`, fmt.Sprintf(`[%s, push, "${trialParameters.x}"]`, self)},
		"prometheus": {`{collector: {kind: PrometheusMetric}, source: {httpGet: {port: auto}}}`, fmt.Sprintf(`[%s, serve, "${trialParameters.x}"]`, self)},
	}
	experiments := map[string]jobExperiment{}
	for name, k := range kinds {
		experiments[name] = jobExperiment{name: name, parallel: 2, max: 4, maxFailed: 1, collector: k.collector, command: k.command}
	}
	return experiments
}

// TestCollectors runs an experiment with each kind of collector.
func TestCollectors(t *testing.T) {
	i := upOrCluster(t)
	for name, experiment := range collectorKinds(testProgram(t)) {
		t.Run(name, func(t *testing.T) { i.checkCollector(t, experiment) })
	}
}

func (i *instance) checkCollector(t *testing.T, experiment jobExperiment) {
	t.Helper()
	if err := i.client.Create(t.Context(), experiment.object(t)); err != nil {
		t.Fatal(err)
	}
	i.awaitEnd(t, experiment.name)
	for _, trial := range i.trials(t, experiment.name) {
		x := trial.Spec.ParameterAssignments[0].Value
		if trial.Status.Observation == nil || len(trial.Status.Observation.Metrics) == 0 {
			t.Errorf("trial %s has no observation", trial.Name)
			continue
		}
		if m := trial.Status.Observation.Metrics[0]; m.Name != "loss" || m.Latest != x || m.Min != x {
			t.Errorf("trial %s observed %+v, want the latest and least loss %s", trial.Name, m, x)
		}
	}
}

// TestExamples runs every shipped example, with a budget of two trials.
func TestExamples(t *testing.T) {
	i := up(t)
	// The other one, examples/tensorflow, is what TestRenderedTensorFlowRuns runs.
	files, err := filepath.Glob("../examples/charlm/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "../examples/"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var experiment v1beta1.Experiment
			if err := yaml.UnmarshalStrict(data, &experiment); err != nil {
				t.Fatal(err)
			}
			two := int32(2)
			experiment.Spec.MaxTrialCount, experiment.Spec.ParallelTrialCount, experiment.Spec.MaxFailedTrialCount = &two, &two, nil
			small, err := yaml.Marshal(experiment)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "experiment.yaml")
			if err := os.WriteFile(path, small, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := i.vernier("run", "-f", path, "--progress", "none", "--timeout", "3m")
			if err != nil {
				t.Fatalf("vernier run: %v\n%s", err, out)
			}
			for _, want := range []string{experiment.Name + "-000", experiment.Spec.AllObjectives()[0].ObjectiveMetricName, "2/2 done"} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}
}
