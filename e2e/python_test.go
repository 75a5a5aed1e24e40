//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestPythonClient runs the tests of the Python client against an instance.
func TestPythonClient(t *testing.T) {
	i := up(t)
	python := pythonWith(t, "pytest==9.2.0 optuna==5.0.0")
	cmd := exec.CommandContext(t.Context(), python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider")
	cmd.Dir = "../clients/python"
	cmd.Env = append(os.Environ(), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1", "VERNIER="+filepath.Join(os.Getenv("VERNIER_BIN_DIR"), "vernier"), "VERNIER_HOME="+i.home)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("import a study of Optuna", func(t *testing.T) { importsOptuna(t, i, python) })
}

// importsOptuna holds that the storages that Optuna writes today are understood.
func importsOptuna(t *testing.T, i *instance, python string) {
	path := filepath.Join(t.TempDir(), "study.db")
	program := `
import optuna, sys
def train(trial):
    optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam"])
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    momentum = trial.suggest_float("momentum", 0, 0.9) if optimizer == "sgd" else 0
    for step in range(3):
        trial.report(lr + step, step)
    if trial.number == 3:
        raise optuna.TrialPruned()
    return lr + momentum
study = optuna.create_study(storage="sqlite:///" + sys.argv[1], study_name="Res Net", load_if_exists=True)
study.optimize(train, n_trials=int(sys.argv[2]))
print(study.best_trial.number)`
	var out []byte
	for _, trials := range []string{"20", "5"} { // the study goes on after it was imported
		var err error
		if out, err = exec.CommandContext(t.Context(), python, "-c", program, path, trials).Output(); err != nil {
			t.Fatal(err)
		}
		if said, err := i.vernier("import", path); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
	}
	best, err := i.vernier("best", "res-net")
	if err != nil {
		t.Fatal(err)
	}
	if want := "res-net-00" + fmt.Sprintf("%02s", strings.TrimSpace(string(out))); !strings.Contains(best, want) {
		t.Errorf("the best is not %s:\n%s", want, best)
	}
}

// TestTheWheelIsATunerOfItsOwn installs the wheel in an empty environment, without
// vernier on PATH, and runs the first program of its README.
func TestTheWheelIsATunerOfItsOwn(t *testing.T) {
	wheels := t.TempDir()
	build := exec.CommandContext(t.Context(), "make", "-C", "..", "-s", "wheel", "ARCHES="+runtime.GOARCH, "WHEELS="+wheels,
		"WHEEL_VERNIER="+filepath.Join(os.Getenv("VERNIER_BIN_DIR"), "vernier"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make wheel: %v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(wheels, "*.whl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("make wheel wrote %q (%v), want one wheel", files, err)
	}
	page, err := os.ReadFile("../clients/python/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "```python\n")
	program, _, _ = strings.Cut(program, "```")
	if n := strings.Count(program, "\n"); n != 3 {
		t.Fatalf("the first program of the README has %d lines, want three:\n%s", n, program)
	}
	cmd := exec.CommandContext(t.Context(), pythonWith(t, files[0]), "-c", program)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "'layers': 1") {
		t.Fatalf("%v\n%s", err, out)
	}
}
