package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/local"
)

// instance is an embedded instance of real programs in a home of its own.
type instance struct {
	t        *testing.T
	home     string
	binaries string
}

// newInstance is stopped when the test ends. The programs must have been built.
func newInstance(t *testing.T) *instance {
	t.Helper()
	dir := os.Getenv("VERNIER_BIN_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "bin")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := local.FindBinaries(dir); err != nil {
		t.Fatalf("%v: this test runs the real programs; make test builds them first", err)
	}
	i := &instance{t: t, home: filepath.Join(t.TempDir(), "home"), binaries: dir}
	t.Cleanup(func() {
		if t.Failed() {
			i.showLogs()
		}
		i.vernier("down")
	})
	return i
}

// try runs the command line on this instance.
func (i *instance) try(args ...string) (stdout string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(i.binaries, "vernier"), append([]string{"--home", i.home}, args...)...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("vernier %s: %w\n%s%s", strings.Join(args, " "), err, out.String(), stderr.String())
	}
	return out.String(), nil
}

// vernier runs the command line, which must succeed.
func (i *instance) vernier(args ...string) string {
	i.t.Helper()
	out, err := i.try(args...)
	if err != nil {
		i.t.Fatal(err)
	}
	return out
}

func (i *instance) status() local.Status {
	i.t.Helper()
	status, err := local.ReadStatus(local.Home(i.home))
	if err != nil {
		i.t.Fatal(err)
	}
	return status
}

func (i *instance) component(name string) local.ComponentStatus {
	i.t.Helper()
	all := i.status().Components
	index := slices.IndexFunc(all, func(c local.ComponentStatus) bool { return c.Name == name })
	if index < 0 {
		i.t.Fatalf("no component %s among %+v", name, all)
	}
	return all[index]
}

// processes are the processes whose command line names the home.
func (i *instance) processes() []string {
	i.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		i.t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && bytes.Contains(data, []byte(i.home)) {
			found = append(found, file+": "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

func (i *instance) showLogs() {
	files, _ := filepath.Glob(filepath.Join(i.home, "logs", "*.log"))
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			i.t.Logf("end of %s:\n%s", file, data[max(0, len(data)-3000):])
		}
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-poll.C:
		}
	}
}

const sleeper = `apiVersion: v1
kind: Pod
metadata: {name: sleeper}
spec:
  terminationGracePeriodSeconds: 2
  restartPolicy: Never
  containers:
    - {name: main, image: host, command: [sh, -c, "echo %s up; exec sleep 600"]}
`

// TestLifecycle is the life of one instance: up, each component killed, down,
// up again with the data still there, the supervisor killed, down.
func TestLifecycle(t *testing.T) {
	i := newInstance(t)
	if _, err := i.try("status"); err == nil {
		t.Error("status succeeds though nothing runs")
	}
	i.vernier("up")
	wantContains(t, i.vernier("up"), "running already")
	wantContains(t, i.vernier("kubectl", "get", "nodes"), "Ready")
	wantContains(t, i.vernier("kubectl", "get", "namespaces", "-o", "name"), "namespace/default", "namespace/kubeflow", "namespace/vernier-system")
	wantContains(t, i.vernier("kubectl", "get", "crds", "-o", "name"), "experiments.kubeflow.org", "trials.kubeflow.org")
	if got, want := strings.TrimSpace(i.vernier("kubeconfig")), filepath.Join(i.home, "kubeconfig"); got != want {
		t.Errorf("vernier kubeconfig prints %q, want %q", got, want)
	}
	var status local.Status
	if err := json.Unmarshal([]byte(i.vernier("status", "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VIRTUAL_ENV", "/of/another/shell")
	invalid := filepath.Join(filepath.Dir(i.home), "experiment.yaml")
	if err := os.WriteFile(invalid, []byte("apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: invalid}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := i.try("run", "-f", invalid); err == nil || !strings.Contains(err.Error(), `VIRTUAL_ENV is`) || !strings.Contains(err.Error(), "/of/another/shell") {
		t.Errorf("run from a shell with another environment says %v", err)
	}
	i.vernier("kubectl", "create", "configmap", "notes", "--from-literal=who=ada")

	for _, c := range status.Components {
		t.Run("kill -9 of "+c.Name, func(t *testing.T) { i.killed(t, c) })
	}
	t.Run("down ends every process, pods too, and up resumes", i.downAndUp)
	t.Run("after kill -9 of the supervisor up resumes", i.supervisorKilled)

	i.vernier("down", "--delete")
	if _, err := os.Stat(i.home); !os.IsNotExist(err) {
		t.Errorf("down --delete leaves the home: %v", err)
	}
}

func (i *instance) killed(t *testing.T, before local.ComponentStatus) {
	i.t = t
	if before.PID == 0 || before.ResidentBytes == 0 {
		t.Fatalf("status %+v names no process", before)
	}
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is back and ready", func() bool {
		now := i.component(before.Name)
		return now.PID != 0 && now.PID != before.PID && now.Ready && now.Restarts == before.Restarts+1
	})
	eventually(t, "the API answers", func() bool {
		out, err := i.try("kubectl", "get", "configmap", "notes", "-o", "jsonpath={.data.who}")
		return err == nil && out == "ada"
	})
}

func (i *instance) downAndUp(t *testing.T) {
	i.t = t
	// Not in t.TempDir(): kubectl takes commas in a path for separators.
	manifest := filepath.Join(filepath.Dir(i.home), "pod.yaml")
	if err := os.WriteFile(manifest, fmt.Appendf(nil, sleeper, i.home), 0o600); err != nil {
		t.Fatal(err)
	}
	i.vernier("kubectl", "apply", "-f", manifest)
	eventually(t, "the pod runs", func() bool {
		out, err := i.try("kubectl", "logs", "sleeper")
		return err == nil && strings.Contains(out, "up")
	})
	i.vernier("down")
	if left := i.processes(); len(left) > 0 {
		t.Errorf("down leaves processes:\n%s", strings.Join(left, "\n"))
	}
	if got := i.status().State; got != local.StateStopped {
		t.Errorf("the state is %s after down", got)
	}
	i.vernier("up")
	wantContains(t, i.vernier("kubectl", "get", "configmap", "notes", "-o", "jsonpath={.data.who}"), "ada")
	eventually(t, "the pod that was stopped is over", func() bool {
		out, err := i.try("kubectl", "get", "pod", "sleeper", "-o", "jsonpath={.status.phase}")
		return err == nil && out == "Failed"
	})
	i.vernier("kubectl", "delete", "pod", "sleeper")
}

func (i *instance) supervisorKilled(t *testing.T) {
	i.t = t
	if err := syscall.Kill(i.status().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no process is left", func() bool { return len(i.processes()) == 0 })
	wantContains(t, i.vernier("up"), "ready")
	wantContains(t, i.vernier("kubectl", "get", "configmap", "notes", "-o", "jsonpath={.data.who}"), "ada")
}

func wantContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not hold %q", text, part)
		}
	}
}

// As the first process of a container, up runs the supervisor as a child, so that
// something reaps what trials leave behind. The components are scripts here.
func TestUpInTheForegroundAsProcessOne(t *testing.T) {
	i := newInstance(t)
	dir := t.TempDir()
	for _, name := range []string{"controlplane", "manager", "collector", "shim", "vernier"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho $PPID >>"+dir+"/parents\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(i.binaries, "vernier"), "--home", i.home, "up", "--foreground")
	cmd.Env = append(os.Environ(), "VERNIER_BIN_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("process namespaces need root")
	}
	parents, readErr := os.ReadFile(filepath.Join(dir, "parents"))
	if err == nil || readErr != nil || strings.HasPrefix(string(parents), "1\n") {
		t.Errorf("components were started by process %q (%v); %v: %s", parents, readErr, err, out)
	}
}

func TestTwoInstancesRunSideBySide(t *testing.T) {
	first, second := newInstance(t), newInstance(t)
	for _, i := range []*instance{first, second} {
		i.vernier("up")
	}
	first.vernier("kubectl", "create", "configmap", "only-here")
	if _, err := second.try("kubectl", "get", "configmap", "only-here"); err == nil {
		t.Error("an object of one instance is seen in the other")
	}
	first.vernier("down")
	wantContains(t, second.vernier("kubectl", "get", "nodes"), "Ready")
}
