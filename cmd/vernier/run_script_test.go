package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/probe"
)

const plainScript = `import argparse, math, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--layers", type=int, default=2)
args = parser.parse_args()
for epoch in range(3):
    time.sleep(0.1)
    print(f"epoch={epoch} accuracy={(epoch + 1) / 3 - abs(math.log10(args.lr) + 2) / 10 - abs(args.layers - 3) / 10}")
`

// TestAPlainScript tunes a script that knows nothing of Vernier, ends with Ctrl-C in
// the middle, goes on, and leaves nothing behind.
func TestAPlainScript(t *testing.T) {
	i := newInstance(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(plainScript), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func() (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		cmd := exec.Command(filepath.Join(i.binaries, "vernier"), "--home", i.home, "run", "train.py",
			"-p", "lr=log(1e-5,1e-1)", "-p", "layers=int(1,4)", "--maximize", "accuracy", "-n", "50", "-j", "4")
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
		return cmd, &out
	}
	first, out := command()
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "some trials have ended", func() bool {
		trials, err := i.try("get", "trials", "train", "--no-headers")
		return err == nil && strings.Count(trials, "Succeeded") >= 8
	})
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := first.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Fatalf("after Ctrl-C: %v\n%s", err, out)
	}
	wantContains(t, out.String(), "no new trials", "Best trial: train-")
	second, out := command()
	if err := second.Run(); err != nil {
		t.Fatalf("the same command again: %v\n%s", err, out)
	}
	wantContains(t, out.String(), "50/50 done")
	var trials v1beta1.TrialList
	if err := json.Unmarshal([]byte(i.vernier("get", "trials", "train", "-o", "json")), &trials); err != nil {
		t.Fatal(err)
	}
	for _, trial := range trials.Items {
		if !trial.IsSucceeded() {
			t.Errorf("trial %s: %v", trial.Name, trial.Status.Conditions)
		}
	}
	if len(trials.Items) != 50 {
		t.Errorf("%d trials, want 50", len(trials.Items))
	}
	i.vernier("down")
	if left := i.processes(); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left beside the script: %v, %v", left, err)
	}
}

// inDirectory makes programs in the test's current directory.
func inDirectory(t *testing.T, files map[string]os.FileMode) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, mode := range files {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProgramsAreFoundInTheirEnvironment(t *testing.T) {
	inDirectory(t, map[string]os.FileMode{"train.py": 0o600, "train": 0o700, "notes.txt": 0o600})
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	venv := filepath.Join(here, "venv")
	if err := os.MkdirAll(filepath.Join(venv, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(venv, "bin", "python"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"VIRTUAL_ENV": venv}[name] }
	tests := map[string]struct {
		args []string
		want []string
		code int
	}{
		"a script of the environment": {[]string{"train.py", "--epochs", "3"}, []string{filepath.Join(venv, "bin", "python"), "train.py", "--epochs", "3"}, 0},
		"an executable of here":       {[]string{"./train", "x"}, []string{filepath.Join(here, "train"), "x"}, 0},
		"one without ./":              {[]string{"train"}, []string{filepath.Join(here, "train")}, 0},
		"what cannot be executed":     {[]string{"notes.txt"}, nil, exitUsage},
		"a directory":                 {[]string{"venv"}, nil, exitUsage},
		"nothing":                     {[]string{"no-such-program"}, nil, exitNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := program(test.args, getenv)
			if exitCode(err) != test.code {
				t.Errorf("code %d (%v), want %d", exitCode(err), err, test.code)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExperimentNames(t *testing.T) {
	for want, argv := range map[string][]string{
		"train":   {"/usr/bin/python3", "src/train.py"},
		"my-tool": {"/opt/My_Tool.sh"},
		"fit":     {"python3", "-m", "lab.fit"},
		"run-3d":  {"/opt/3d"},
		"run":     {"/opt/___"},
		"python3": {"/usr/bin/python3", "-c", "print(1)"},
	} {
		if got := experimentName(argv); got != want {
			t.Errorf("%v: %q, want %q", argv, got, want)
		}
	}
}

func TestTheEnvironmentThatTrialsGet(t *testing.T) {
	shell := map[string]string{"PATH": "/a:/b", "VIRTUAL_ENV": "/v", "SECRET": "s", "TOKEN": "a$(b)"}
	o := scriptOptions{env: []string{"TOKEN", "MODE=fast"}}
	got, err := o.environment(true, func(name string) string { return shell[name] })
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range got {
		lines = append(lines, e.Name+"="+e.Value)
	}
	want := []string{"PATH=/a:/b", "VIRTUAL_ENV=/v", "PYTHONUNBUFFERED=1", "TOKEN=a$$(b)", "MODE=fast"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.env = []string{"NOT_SET"}
	if _, err := o.environment(true, func(string) string { return "" }); exitCode(err) != exitUsage {
		t.Errorf("a variable that is not set: %v", err)
	}
}

func TestWrongCommandLinesOfRun(t *testing.T) {
	inDirectory(t, map[string]os.FileMode{"prog": 0o700})
	tests := map[string]struct {
		args []string
		want []string
	}{
		"no parameter":         {[]string{"prog", "--minimize", "loss", "--pass", "env"}, []string{"-p 'lr=log(1e-5,1e-1)'"}},
		"no metric":            {[]string{"prog", "-p", "x=int(1,2)", "--pass", "env"}, []string{"--minimize loss", "--probe"}},
		"a file and a program": {[]string{"prog", "-f", "x.yaml"}, []string{"no argument"}},
		"trials of a file":     {[]string{"-f", "x.yaml", "-n", "5"}, []string{"--max-trials", "--namespace"}},
		"hours below zero":     {[]string{"--max-gpu-hours", "-1", "-p", "lr=log(1e-5,1)", "--minimize", "loss", "--", "sh"}, []string{"--max-gpu-hours -1: it must be above 0"}},
		"less than no GPUs":    {[]string{"--gpus", "-1", "-p", "lr=log(1e-5,1)", "--minimize", "loss", "--", "sh"}, []string{"--gpus -1: it must be at least 0"}},
		"hours of a file":      {[]string{"-f", "x.yaml", "--max-gpu-hours", "5"}, []string{"--max-gpu-hours is for vernier run PROGRAM"}},
		"no trials":            {[]string{"prog", "-p", "x=int(1,2)", "--minimize", "l", "-n", "0"}, []string{"at least 1"}},
		"time below zero":      {[]string{"prog", "-p", "x=int(1,2)", "--minimize", "l", "--max-duration", "-5m"}, []string{"--max-duration -5m0s", "below zero"}},
		"a trial without time": {[]string{"prog", "-p", "x=int(1,2)", "--minimize", "l", "--max-trial-duration", "-1s"}, []string{"--max-trial-duration -1s", "below zero"}},
		"no goal":              {[]string{"prog", "-p", "x=int(1,2)", "--minimize", "l", "--goal", "nan"}, []string{"--goal NaN", "finite"}},
		"a goal without end":   {[]string{"prog", "-p", "x=int(1,2)", "--minimize", "l", "--goal", "-inf", "--dry-run"}, []string{"--goal -Inf", "finite"}},
		"no such algorithm":    {[]string{"prog", "-p", "x=int(1,2)", "--minimize", "l", "--algorithm", "tpee"}, []string{"did you mean tpe?"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := newRootCommand(false)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"--home", filepath.Join(t.TempDir(), "home"), "run"}, test.args...))
			root.SetOut(&bytes.Buffer{})
			err := root.ExecuteContext(t.Context())
			if exitCode(err) != exitUsage {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, exitUsage)
			}
			requireText(t, err.Error(), test.want...)
		})
	}
}

func TestWhatAProbeSuggests(t *testing.T) {
	colon := func(name string) probe.Missing {
		return probe.Missing{Name: name, Hint: "print it, or use the filter '" + parse.ColonFilter + "'"}
	}
	tests := map[string]struct {
		report *probe.Report
		want   []string
	}{
		"nothing":                          {&probe.Report{}, []string{"--minimize METRIC"}},
		"the metric of the validation":     {&probe.Report{Metrics: []probe.Metric{{Name: "val_acc"}, {Name: "loss"}}}, []string{"--maximize val_acc"}},
		"the filter that a metric needs":   {&probe.Report{Unread: []probe.Missing{colon("loss"), colon("val_loss")}}, []string{"--filter " + shellQuote(parse.ColonFilter), "--minimize val_loss"}},
		"no filter beside metrics as such": {&probe.Report{Metrics: []probe.Metric{{Name: "loss"}}, Unread: []probe.Missing{colon("acc")}}, []string{"--minimize loss"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, new(scriptOptions).suggestedObjectives(tc.report)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A program that hangs when it is asked for its flags ends with the command.
func TestInterruptedWhileAProgramIsAskedForItsFlags(t *testing.T) {
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		if _, err := os.ReadFile(started); err == nil { // as soon as the program has opened it
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		}
	}()
	o := scriptOptions{pass: "auto"}
	o.spec.Argv = []string{"/bin/sh", "-c", "echo $$ > " + started + "; exec sleep 1000"}
	if err := o.space(t.Context()); exitCode(err) != exitInterrupted {
		t.Errorf("%v: code %d, want %d", err, exitCode(err), exitInterrupted)
	}
}
