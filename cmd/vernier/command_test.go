package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/local"
)

func TestExitCodes(t *testing.T) {
	experiments := schema.GroupResource{Group: "kubeflow.org", Resource: "experiments"}
	tests := map[string]struct {
		err  error
		want int
	}{
		"none":                      {nil, 0},
		"any other":                 {errors.New("x"), exitFailure},
		"not found":                 {apierrors.NewNotFound(experiments, "x"), exitNotFound},
		"wrapped":                   {fmt.Errorf("read: %w", apierrors.NewNotFound(experiments, "x")), exitNotFound},
		"no rights":                 {apierrors.NewForbidden(experiments, "x", errors.New("no")), exitNotAllowed},
		"refused by a webhook":      {apierrors.NewForbidden(experiments, "x", errors.New(`admission webhook "v" denied the request: spec.x`)), exitInvalid},
		"conflict":                  {apierrors.NewConflict(experiments, "x", errors.New("old")), exitConflict},
		"nothing listens":           {fmt.Errorf("dial: %w", syscall.ECONNREFUSED), exitUnreachable},
		"an unknown command":        {errors.New(`unknown command "x" for "vernier"`), exitUsage},
		"a code is not overwritten": {&exitError{exitTimeout, apierrors.NewNotFound(experiments, "x")}, exitTimeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := exitCode(test.err); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestConclude(t *testing.T) {
	best := aTrial(3, v1beta1.TrialSucceeded, "0.125")
	failed := aTrial(4, v1beta1.TrialFailed, "")
	failed.Status.Conditions[1].Message = "out of memory"
	nan := aTrial(5, v1beta1.TrialSucceeded, "NaN")
	tests := map[string]struct {
		experiment  *v1beta1.Experiment
		trials      []v1beta1.Trial
		requireGoal bool
		wantCode    int
		wantText    []string
	}{
		"success prints the best":             {ended(withBest(anExperiment(), best), v1beta1.ExperimentSucceeded, "ExperimentMaxTrialsReached", ""), []v1beta1.Trial{best}, false, 0, []string{"charlm-0003", "loss (minimized)", "0.125", "lr", "0.3"}},
		"a goal that was not reached":         {ended(withBest(anExperiment(), best), v1beta1.ExperimentSucceeded, "ExperimentMaxTrialsReached", ""), []v1beta1.Trial{best}, true, exitGoalNotReached, []string{"charlm-0003"}},
		"a goal that was reached":             {ended(withBest(anExperiment(), best), v1beta1.ExperimentSucceeded, "ExperimentGoalReached", ""), []v1beta1.Trial{best}, true, 0, nil},
		"failure says why":                    {ended(anExperiment(), v1beta1.ExperimentFailed, "ExperimentFailed", "too many"), []v1beta1.Trial{failed}, false, exitExperimentFailed, []string{"no trial succeeded"}},
		"success in which every trial failed": {ended(anExperiment(), v1beta1.ExperimentSucceeded, "ExperimentMaxTrialsReached", "too many"), []v1beta1.Trial{failed}, false, exitExperimentFailed, []string{"No best trial"}},
		"success in which every value is NaN": {ended(anExperiment(), v1beta1.ExperimentSucceeded, "ExperimentMaxTrialsReached", ""), []v1beta1.Trial{nan}, false, exitExperimentFailed, []string{"No best trial", "in 1 trial loss is not a finite number"}},
		"success without any trial":           {ended(anExperiment(), v1beta1.ExperimentSucceeded, "ExperimentSuggestionEndReached", ""), nil, false, exitExperimentFailed, []string{"No best trial"}},
	}
	why := map[string]string{"success in which every value is NaN": "loss of trial charlm-0005 is NaN", "success without any trial": "it has no trials"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := conclude(newExperimentView(test.experiment, test.trials), ending{requireGoal: test.requireGoal}, streams{out: &out})
			if exitCode(err) != test.wantCode {
				t.Errorf("code %d (%v), want %d", exitCode(err), err, test.wantCode)
			}
			requireText(t, out.String(), test.wantText...)
			switch {
			case why[name] != "":
				requireText(t, err.Error(), why[name])
			case test.wantCode == exitExperimentFailed:
				requireText(t, err.Error(), "charlm-0004", "out of memory")
			}
		})
	}
}

func TestReadManifests(t *testing.T) {
	const sound = "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: a}\n"
	tests := map[string]struct {
		content string
		want    []string
		wantErr string
	}{
		"one document":              {sound, []string{"a"}, ""},
		"several, some empty":       {"---\n" + sound + "---\n# nothing\n---\n" + sound, []string{"a", "a"}, ""},
		"no kind":                   {"apiVersion: v1\nmetadata: {name: a}\n", nil, "kind"},
		"no name":                   {"apiVersion: v1\nkind: ConfigMap\n", nil, "metadata.name"},
		"not YAML":                  {"a: [", nil, "document 1"},
		"nothing at all":            {"", nil, "no objects"},
		"a list where a map was":    {"- a\n- b\n", nil, "document 1"},
		"a key that is there twice": {sound + "spec:\n  maxTrialCount: 3\n  maxTrialCount: 30\n", nil, `key "maxTrialCount" already set`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := readManifests(strings.NewReader(test.content), []string{"-"})
			if test.wantErr != "" {
				if exitCode(err) != exitInvalid || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got %v, want an error that names %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, o := range objects {
				names = append(names, o.GetName())
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFolderStandsForItsManifests(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "b.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`, "notes.txt": "not a manifest [",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := readManifests(nil, []string{dir})
	if err != nil || len(objects) != 2 {
		t.Errorf("got %d objects, %v; want 2", len(objects), err)
	}
	if _, err := theExperiment(objects); exitCode(err) != exitInvalid {
		t.Errorf("no experiment among them, yet: %v", err)
	}
}

// TestExamplesAreReadable holds that the shipped examples hold one experiment
// each that decodes strictly.
func TestExamplesAreReadable(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		objects, err := readManifests(nil, []string{file})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := theExperiment(objects); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestLastLines(t *testing.T) {
	tests := map[string]struct {
		text string
		n    int64
		want string
	}{
		"all":                      {"a\nb\n", -1, "a\nb\n"},
		"the last":                 {"a\nb\n", 1, "b\n"},
		"without a last newline":   {"a\nb", 1, "b"},
		"more than there are":      {"a\nb\n", 9, "a\nb\n"},
		"none":                     {"a\nb\n", 0, ""},
		"none of an empty text":    {"", 0, ""},
		"one of an unfinished one": {"abc", 1, "abc"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := string(lastLines([]byte(test.text), test.n)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCommandsThatNeedAnInstanceSayHowToStartIt(t *testing.T) {
	for _, args := range [][]string{{"get", "experiments"}, {"best", "x"}, {"describe", "x"}, {"logs", "x/1"}, {"status"}} {
		t.Run(args[0], func(t *testing.T) {
			root := newRootCommand(false)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"--home", filepath.Join(t.TempDir(), "home")}, args...))
			root.SetOut(&bytes.Buffer{})
			err := root.ExecuteContext(context.Background())
			if exitCode(err) != exitUnreachable {
				t.Errorf("code %d (%v), want %d", exitCode(err), err, exitUnreachable)
			}
		})
	}
}

func TestWrongCommandLinesAreUsageErrors(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing to list": {"get"}, "something unknown to list": {"get", "lists"},
		"an unknown command": {"frobnicate"}, "an unknown flag": {"run", "--frobnicate"}, "a missing file": {"run"},
		"a missing argument": {"best"}, "a bad mode": {"run", "-f", "-", "--progress", "loud"},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRootCommand(false)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"--home", filepath.Join(t.TempDir(), "home")}, args...))
			if err := root.ExecuteContext(context.Background()); exitCode(err) != exitUsage {
				t.Errorf("code %d (%v), want %d", exitCode(err), err, exitUsage)
			}
		})
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		var out bytes.Buffer
		root := newRootCommand(false)
		root.SetOut(&out)
		root.SetArgs([]string{arg})
		if err := root.ExecuteContext(t.Context()); err != nil || out.String() != versionText()+"\n" {
			t.Errorf("%s: %q, %v", arg, out.String(), err)
		}
	}
}

// TestErrorsSayWhatToDo holds the words of errors that a person meets first.
func TestErrorsSayWhatToDo(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	manifest := func(text string) string {
		path := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		args []string
		code int
		want []string
	}{
		"no argument":                {[]string{"best"}, exitUsage, []string{"takes one argument, not 0: write vernier best EXPERIMENT"}},
		"two arguments":              {[]string{"logs", "a/1", "a/2"}, exitUsage, []string{"takes one argument, not 2: write vernier logs EXPERIMENT/TRIAL"}},
		"a format of best":           {[]string{"best", "x", "-o", "toml"}, exitUsage, []string{"toml", "table, args, command, env, json or yaml"}},
		"a format of experiments":    {[]string{"get", "experiments", "-o", "xml"}, exitUsage, []string{"xml", "table, wide, name, json or yaml"}},
		"a format of trials":         {[]string{"get", "trials", "x", "-o", ""}, exitUsage, []string{"table, wide, name, json or yaml"}},
		"a format of status":         {[]string{"status", "-o", "wide"}, exitUsage, []string{"wide", "table, json or yaml"}},
		"a format of a store":        {[]string{"store", "stat", "-o", "xml"}, exitUsage, []string{"xml", "table, json or yaml"}},
		"a time below zero":          {[]string{"run", "-f", "-", "--timeout", "-1s"}, exitUsage, []string{"--timeout -1s is below zero", "1h"}},
		"a negative number of lines": {[]string{"logs", "x/1", "--tail", "-5"}, exitUsage, []string{"--tail -5", "-1 for all"}},
		"no instance":                {[]string{"status"}, exitUnreachable, []string{"no instance runs in " + home, "vernier up"}},
		"a file that is not":         {[]string{"run", "-f", "/no/such.yaml"}, exitNotFound, []string{"no file or folder /no/such.yaml", "correct -f"}},
		"an empty file":              {[]string{"run", "-f", manifest("")}, exitInvalid, []string{"no objects in", "x.yaml", "name YAML or JSON"}},
		"an object without kind":     {[]string{"run", "-f", manifest("a: 1\n")}, exitInvalid, []string{"x.yaml: document 1", "needs apiVersion and kind"}},
		"a misspelled kind":          {[]string{"run", "-f", manifest("apiVersion: kubeflow.org/v1beta1\nkind: Experment\nmetadata: {name: a}\n")}, exitInvalid, []string{`Experment "a"`, "did you mean Experiment?"}},
		"no experiment":              {[]string{"run", "-f", manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}, exitInvalid, []string{"no object of kind Experiment", `ConfigMap "a"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := newRootCommand(false)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"--home", home}, test.args...))
			root.SetOut(&bytes.Buffer{})
			err := root.ExecuteContext(t.Context())
			if exitCode(err) != test.code {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, test.code)
			}
			requireText(t, err.Error(), test.want...)
		})
	}
}

func TestDownSaysWhenThereIsNothingToStop(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	for _, args := range [][]string{{"down"}, {"down", "--delete"}} {
		root := newRootCommand(false)
		var out bytes.Buffer
		root.SetArgs(append([]string{"--home", home}, args...))
		root.SetOut(&out)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("nothing to stop: there is no instance in "+home+"\n", out.String()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", args, diff)
		}
	}
}

func TestDownStopsNothingInAFolderThatIsNoHome(t *testing.T) {
	folder := t.TempDir()
	root := newRootCommand(false)
	var out bytes.Buffer
	root.SetArgs([]string{"--home", folder, "down"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("nothing to stop: there is no instance in "+folder+"\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnInstanceThatIsNotReadySaysWhy(t *testing.T) {
	tests := map[string]struct {
		status local.Status
		want   string
	}{
		"none":     {local.Status{State: local.StateStopped}, "no instance runs in /h: start it with vernier up"},
		"stopped":  {local.Status{State: local.StateStopped, PID: 7}, "the instance in /h is stopped: start it with vernier up; its experiments are kept"},
		"starting": {local.Status{State: local.StateStarting, Message: "waiting for etcd"}, "the instance in /h is Starting: waiting for etcd: wait, then ask again"},
		"stopping": {local.Status{State: local.StateStopping}, "the instance in /h is Stopping: wait, then ask again"},
		"with the end of a log": {local.Status{State: local.StateFailed, Message: "etcd ended: exit status 1; see its log /h/etcd.log:\n{\"level\":\"info\"}\nbind: address in use"},
			"the instance in /h is Failed: etcd ended: exit status 1; see its log /h/etcd.log: start it with vernier up"},
		"failed": {local.Status{State: local.StateFailed, Message: "etcd ended"}, "the instance in /h is Failed: etcd ended: start it with vernier up"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, notReady("/h", test.status).Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheStatusOfAStoppedInstanceHasNoEmptyTable(t *testing.T) {
	tests := map[string]struct {
		status local.Status
		table  bool
	}{
		"stopped":               {local.Status{State: local.StateStopped, PID: 7}, false},
		"failed at its start":   {local.Status{State: local.StateFailed}, false},
		"ready with components": {local.Status{State: local.StateReady, Components: []local.ComponentStatus{{Name: "etcd"}}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetOut(&out)
			if err := statusTable(cmd, "/h", test.status); err != nil {
				t.Fatal(err)
			}
			requireText(t, out.String(), "/h   "+string(test.status.State)+"\n")
			if got := strings.Contains(out.String(), "COMPONENT"); got != test.table {
				t.Errorf("a table: %t, want %t:\n%s", got, test.table, out.String())
			}
		})
	}
}

func TestNoExperimentOfAName(t *testing.T) {
	cause := apierrors.NewNotFound(schema.GroupResource{Group: "kubeflow.org", Resource: "experiments"}, "x")
	err := &noExperiment{types.NamespacedName{Namespace: "default", Name: "x"}, "", cause, ""}
	if exitCode(err) != exitNotFound || !apierrors.IsNotFound(err) {
		t.Errorf("code %d, want %d: %v", exitCode(err), exitNotFound, err)
	}
	requireText(t, err.Error(), `no experiment "x" in namespace "default"`, "get experiments --all-namespaces")
}
