//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// signalAll signals every process of the instance and every process whose command
// line holds one of the texts. Like the end of a session, it spares nothing.
func (i *instance) signalAll(t *testing.T, sig syscall.Signal, texts ...string) {
	t.Helper()
	// All are found before the first is signalled: a reboot leaves no time between.
	pids := map[int]bool{}
	for _, text := range append(texts, i.home) {
		for _, line := range processesNaming(t, text) {
			pid, _, _ := strings.Cut(line, ":")
			if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() {
				pids[n] = true
			}
		}
	}
	for pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}

func (i *instance) awaitNoProcess(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, func(context.Context) error {
		if left := processesNaming(t, i.home); len(left) > 0 {
			return fmt.Errorf("processes left: %v", left)
		}
		return nil
	})
}

// TestAPowerCut ends everything at once and empties every file that no database
// keeps: what was there must be there again. Before it, a trial writes its metrics
// below its project, where the directory is missing, and its model beside it.
func TestAPowerCut(t *testing.T) {
	i := up(t)
	project := t.TempDir()
	experiment := jobExperiment{
		name: "cut", parallel: 1, max: 2,
		collector: fmt.Sprintf(`{collector: {kind: File}, source: {fileSystemPath: {path: %s/metrics/m.log, kind: File, format: TEXT}}}`, project),
		command:   fmt.Sprintf(`[sh, -c, "cd %s && echo loss=${trialParameters.x} > metrics/m.log && echo weights > model.tmp && mv model.tmp model-${trialParameters.x}.pt"]`, project),
	}
	if err := i.client.Create(t.Context(), experiment.object(t)); err != nil {
		t.Fatal(err)
	}
	i.awaitEnd(t, "cut")
	if models, err := filepath.Glob(filepath.Join(project, "model-*.pt")); err != nil || len(models) != 2 {
		t.Errorf("models that the trials left: %v, %v", models, err)
	}

	i.signalAll(t, syscall.SIGKILL)
	i.awaitNoProcess(t)
	err := filepath.WalkDir(i.home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (e.Name() == "etcd" || e.Name() == "store") {
			return fs.SkipDir
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		return os.Truncate(path, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := i.vernier("up"); err != nil {
		t.Fatalf("vernier up: %v\n%s", err, out)
	}
	out, err := i.vernier("get", "trials", "cut")
	if err != nil || strings.Count(out, "Succeeded") < 2 {
		t.Errorf("after the cut: %v\n%s", err, out)
	}
}

// TestTheEndOfASession sends SIGTERM to every process, as a logout or a reboot
// does. A program has time to save, and runs again later without a failed trial.
func TestTheEndOfASession(t *testing.T) {
	i := up(t)
	dir := t.TempDir()
	experiment := jobExperiment{
		name: "session", parallel: 2, max: 2,
		command: fmt.Sprintf(`[sh, -c, "cd %s && if [ -e saved-$1 ]; then echo loss=$1; exit; fi; trap 'sleep 1.5; touch saved-$1; exit 1' TERM; touch began-$1; while :; do sleep 0.05; done", trial, "${trialParameters.x}"]`, dir),
	}
	if err := i.client.Create(t.Context(), experiment.object(t)); err != nil {
		t.Fatal(err)
	}
	marks := func(pattern string) func(context.Context) error {
		return func(context.Context) error {
			if found, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(found) != 2 {
				return fmt.Errorf("%s: %v, %w", pattern, found, err)
			}
			return nil
		}
	}
	eventually(t, time.Minute, marks("began-*"))
	i.signalAll(t, syscall.SIGTERM, dir)
	i.awaitNoProcess(t)
	eventually(t, time.Second, marks("saved-*"))
	if out, err := i.vernier("up"); err != nil {
		t.Fatalf("vernier up: %v\n%s", err, out)
	}
	i.awaitEnd(t, "session")
	for _, trial := range i.trials(t, "session") {
		if n := len(trial.Status.Conditions); n == 0 || trial.Status.Conditions[n-1].Type != v1beta1.TrialSucceeded {
			t.Errorf("%s: %+v", trial.Name, trial.Status.Conditions)
		}
	}
}

// TestStartsAndStopsAtOnce starts an instance twice at once, and again while it is
// being stopped.
func TestStartsAndStopsAtOnce(t *testing.T) {
	i := &instance{home: filepath.Join(t.TempDir(), "home")}
	t.Cleanup(func() {
		if out, err := i.vernier("down"); err != nil {
			t.Errorf("vernier down: %v\n%s", err, out)
		}
	})
	start := func() {
		if out, err := i.vernier("up"); err != nil {
			t.Errorf("vernier up: %v\n%s", err, out)
		}
	}
	var both sync.WaitGroup
	both.Go(start)
	both.Go(start)
	both.Wait()
	both.Go(func() {
		if out, err := i.vernier("down"); err != nil {
			t.Errorf("vernier down: %v\n%s", err, out)
		}
	})
	eventually(t, time.Minute, func(context.Context) error {
		out, err := i.vernier("status")
		if err == nil && strings.Contains(out, "Ready") {
			return fmt.Errorf("still ready")
		}
		return nil
	})
	start()
	both.Wait()
}
