//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// pushProgram is a program and the package of PyPI that it needs, if any.
type pushProgram struct{ needs, code string }

// trials is how many are tried: importing Katib's SDK takes seconds of CPU time.
func (p pushProgram) trials() int {
	if p.needs == "" {
		return 4
	}
	return 2
}

// pushPrograms are training programs in Python as a user would write them: none
// knows of Vernier but by its environment. x is their hyperparameter.
func pushPrograms(t *testing.T) map[string]pushProgram {
	return map[string]pushProgram{
		"http":   {code: documented(t, 0)},
		"socket": {code: documented(t, 1)},
		// Eight processes of one pod push at the same time; each loss must count.
		"processes": {code: `
import json, multiprocessing, os, urllib.request
def push(n):
    for i in range(50):
        urllib.request.urlopen(os.environ["VERNIER_PUSH_URL"], json.dumps({"loss": x + (50 * n + i + 1) % 400, "step": i}).encode())
with multiprocessing.Pool(8) as pool:
    pool.map(push, range(8))
urllib.request.urlopen(os.environ["VERNIER_PUSH_URL"], json.dumps({"loss": x, "step": 50}).encode())
`},
		// What Kubeflow's documentation gives for a program without its SDK.
		"trainer": {code: `
import json, os, urllib.request
def status(loss, step):
    body = {"trainerStatus": {"progressPercentage": 50 * step, "metrics": [{"name": "loss", "value": str(loss)}, {"name": "current_step", "value": str(step)}],
                              "lastUpdatedTime": "2026-01-01T00:00:0%d+00:00" % step}}
    token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read().strip()
    request = urllib.request.Request(os.environ["KUBEFLOW_TRAINER_SERVER_URL"], data=json.dumps(body).encode(), method="POST",
                                     headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    assert urllib.request.urlopen(request, timeout=5).status == 200
status(7, 0)
status(x, 1)
`},
		"mlflow": {needs: "mlflow-skinny", code: `
import math, mlflow, os, tempfile
mlflow.set_experiment("tuning")
with mlflow.start_run(run_name="trial") as run:
    mlflow.log_param("x", x)
    mlflow.log_params({"optimizer": "adam", "layers": 3})
    mlflow.set_tag("stage", "test")
    mlflow.log_metric("loss", 7, step=0)
    mlflow.log_metric("loss", math.nan, step=1)
    mlflow.log_metrics({"loss": x, "accuracy": 0.5, "other": math.inf}, step=2)
    with mlflow.start_run(nested=True) as child:
        mlflow.log_metric("accuracy", 0.25)
    mlflow.log_text("hello", "notes/hello.txt")
    assert mlflow.artifacts.load_text(run.info.artifact_uri + "/notes/hello.txt") == "hello"
    with open(os.path.join(tempfile.mkdtemp(), "w.bin"), "w") as f: f.write("weights")
    mlflow.log_artifact(f.name)
client = mlflow.MlflowClient()
done = client.get_run(run.info.run_id)
assert done.info.status == "FINISHED" and done.data.params["optimizer"] == "adam" and done.data.tags["stage"] == "test", done
assert done.data.metrics["loss"] == x and done.data.metrics["other"] == math.inf, done.data.metrics
history = client.get_metric_history(run.info.run_id, "loss")
assert [m.step for m in history] == [0, 1, 2] and math.isnan(history[1].value), history
assert client.get_run(child.info.run_id).data.metrics == {"accuracy": 0.25}
assert {a.path for a in client.list_artifacts(run.info.run_id)} == {"notes", "w.bin"}
`},
		// A plain example of Katib: its SDK, its default address.
		"katib": {needs: katibSDK, code: `
import kubeflow.katib as katib
katib.report_metrics({"loss": 7, "accuracy": 0.5})
katib.report_metrics({"loss": x})
`},
	}
}

// documented is the n-th piece of Python in the page on pushing, with a first
// loss of 7 and a second of x.
func documented(t *testing.T, n int) string {
	t.Helper()
	page, err := os.ReadFile("../docs/collectors-push.md")
	if err != nil {
		t.Fatal(err)
	}
	pieces := strings.Split(string(page), "```python\n")
	if len(pieces) < n+2 {
		t.Fatalf("the page has %d pieces of Python", len(pieces)-1)
	}
	code, _, _ := strings.Cut(pieces[n+1], "```")
	if !strings.Contains(code, `"loss": 0.1, "step": 3`) {
		t.Fatalf("the page reports something else: %s", code)
	}
	first := strings.ReplaceAll(code, `"loss": 0.1, "step": 3`, `"loss": 7, "step": 0`)
	return first + strings.ReplaceAll(code, `"loss": 0.1, "step": 3`, `"loss": x, "step": 1`)
}

// venvs holds what pythonWith made, by what it was to have. TestMain removes it.
var (
	venvs     string
	venvsMade sync.Map
)

// pythonWith is a Python with packages from PyPI, which the tests share.
func pythonWith(t *testing.T, needs string) string {
	t.Helper()
	if needs == "" {
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Fatal(err)
		}
		return python
	}
	python, err := venvOf(t.Context(), "python3", needs)
	if err != nil {
		t.Fatal(err)
	}
	return python
}

// venvOf makes a virtual environment of a Python, once in a run of the tests.
func venvOf(ctx context.Context, base, packages string) (string, error) {
	if python, ok := venvsMade.Load(base + packages); ok {
		return python.(string), nil
	}
	dir, err := os.MkdirTemp(venvs, "")
	if err == nil {
		err = os.Chmod(dir, 0o755) // for programs of other users
	}
	if err != nil {
		return "", err
	}
	python := filepath.Join(dir, "bin", "python")
	for _, argv := range [][]string{
		{base, "-m", "venv", dir},
		append([]string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, strings.Fields(packages)...),
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%q: %w\n%s", argv, err, out)
		}
	}
	venvsMade.Store(base+packages, python)
	return python, nil
}

func pushExperiment(name string, trials int, command string) jobExperiment {
	return jobExperiment{
		name:      "push-" + name,
		objective: `{type: minimize, objectiveMetricName: loss, additionalMetricNames: [accuracy]}`,
		parallel:  2,
		max:       trials,
		collector: `{collector: {kind: Push}}`,
		command:   command,
	}
}

// TestPushPrograms runs programs that push by each protocol under "vernier run",
// two at a time, so that they share the machine's loopback.
func TestPushPrograms(t *testing.T) {
	i := up(t)
	programs := pushPrograms(t)
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script, manifest := filepath.Join(dir, "train.py"), filepath.Join(dir, "experiment.yaml")
			write(t, script, "import sys\nx = float(sys.argv[1])\n"+program.code)
			write(t, manifest, pushExperiment(name, program.trials(), pythonCommand(pythonWith(t, program.needs), script)).yaml())
			if out, err := i.vernier("run", "-f", manifest, "--progress", "none", "--timeout", "10m"); err != nil {
				logs, _ := i.vernier("logs", "push-"+name)
				t.Fatalf("vernier run: %v\n%s\n%s", err, out, logs)
			}
			for _, trial := range i.trials(t, "push-"+name) {
				want := trial.Spec.ParameterAssignments[0].Value
				m := lossOf(trial)
				if m.Latest != want || m.Min != want {
					t.Errorf("trial %s observed %+v, want the latest and least loss %s", trial.Name, m, want)
				}
				if name != "processes" && m.Max != "7" {
					t.Errorf("trial %s observed %+v, want the greatest loss 7", trial.Name, m)
				}
			}
		})
	}
}

func lossOf(trial v1beta1.Trial) v1beta1.Metric {
	if trial.Status.Observation != nil {
		for _, m := range trial.Status.Observation.Metrics {
			if m.Name == "loss" {
				return m
			}
		}
	}
	return v1beta1.Metric{}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
