package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAProbeOfAProgramThatFailsIsAFailure(t *testing.T) {
	tests := map[string]struct {
		program string
		args    []string
		code    int
		want    string
	}{
		"it ends well": {"echo loss=1", nil, 0, ""},
		"it crashes": {"echo loss=1; echo 'Traceback (most recent call last):' >&2; echo 'ValueError: no data' >&2; exit 3", nil, exitExperimentFailed,
			"the program ended with code 3, and so would each trial: correct it, or give it what it needs after --. Its last lines:\n  loss=1\n  Traceback (most recent call last):\n  ValueError: no data"},
		"it prints nothing":                           {"exit 2", nil, exitExperimentFailed, "the program ended with code 2, and so would each trial: correct it, or give it what it needs after --"},
		"it crashes before it writes a file":          {"exit 2", []string{"--metrics", "out.csv"}, exitExperimentFailed, "the program ended with code 2, and so would each trial: correct it, or give it what it needs after --"},
		"it ends well and lacks the metric of a flag": {"echo loss=1", []string{"--maximize", "acc"}, exitNotFound, "one metric was not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "prog")
			if err := os.WriteFile(path, []byte("#!/bin/sh\nexec 2>&1\n"+test.program+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			root := newRootCommand(false)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"--home", filepath.Join(t.TempDir(), "home"), "run", path, "--probe", "--pass", "env", "-p", "x=int(1,2)"}, test.args...))
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&bytes.Buffer{})
			err := root.ExecuteContext(t.Context())
			if exitCode(err) != test.code {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, test.code)
			}
			if err != nil && test.want != "" {
				if diff := cmp.Diff(test.want, err.Error()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if suggests := strings.Contains(out.String(), "A search of it:"); suggests == (test.code == exitExperimentFailed) {
				t.Errorf("suggests a search: %t\n%s", suggests, out.String())
			}
		})
	}
}

// What a trial would get and the program has no default for is there in the run of a probe.
func TestAProbeGivesTheProgramWhatItNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		program string
		args    []string
	}{
		"a variable":               {`echo "loss=$MODE"`, []string{"-e", "MODE=0.5", "-p", "x=int(1,3)"}},
		"parameters as variables":  {`test "$VERNIER_PARAM_X" = 2 && test "$VERNIER_PARAM_OPT" = sgd && echo loss=0.5`, []string{"--pass", "env", "-p", "x=int(1,3)", "-p", "opt=choice(sgd,adam)"}},
		"parameters in a file":     {`test "$(cat $VERNIER_PARAMS_FILE)" = '{"x": 2, "opt": "sgd"}' && echo loss=0.5`, []string{"--pass", "file", "-p", "x=int(1,3)", "-p", "opt=choice(sgd,adam)"}},
		"a variable with a dollar": {`test "$MODE" = 'a$b' && echo loss=0.5`, []string{"-e", "MODE=a$b", "-p", "x=int(1,3)"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "prog")
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+test.program+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			root := newRootCommand(false)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"run", path, "--probe", "--minimize", "loss"}, test.args...))
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&out)
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			requireText(t, out.String(), "loss     1        0.5")
		})
	}
}

// A program that reports a curve and has a flag for its length can have short trials.
func TestAProbeSuggestsShortTrials(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	program := "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\np.add_argument('--epochs', type=int, default=27)\n" +
		"for e in range(%s): print('loss=%%d' %% e)\n"
	for name, test := range map[string]struct {
		epochs      string
		flags, rest []string
		want        string
	}{
		"a curve":               {epochs: "p.parse_args().epochs", want: ", in about the same time| -n 60 --name train-short"},
		"budgets are given":     {epochs: "p.parse_args().epochs", flags: []string{"-n", "20", "-j", "1", "--name", "train"}, want: ", in about the same time| -n 60 --name train-short -j 1"},
		"few trials":            {epochs: "p.parse_args().epochs", flags: []string{"-n", "3", "-j", "4"}, want: "| -n 15 --name train-short -j 4"},
		"more at a time":        {epochs: "p.parse_args().epochs", flags: []string{"-n", "20", "-j", "60"}, want: "| -n 71 --name train-short -j 60"},
		"one point":             {epochs: "1"},
		"the length is given":   {epochs: "p.parse_args().epochs", rest: []string{"--epochs", "5"}},
		"settings are given":    {epochs: "p.parse_args().epochs", flags: []string{"--setting", "random_state=1"}},
		"an algorithm is given": {epochs: "p.parse_args().epochs", flags: []string{"--algorithm", "tpe"}},
	} {
		path := filepath.Join(t.TempDir(), "train.py")
		if err := os.WriteFile(path, fmt.Appendf(nil, program, test.epochs), 0o600); err != nil {
			t.Fatal(err)
		}
		root := newRootCommand(false)
		root.SetArgs(slices.Concat([]string{"--home", filepath.Join(t.TempDir(), "home"), "run", "--probe"}, test.flags, []string{"--", python, path}, test.rest))
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&bytes.Buffer{})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		sameTime, budgets, _ := strings.Cut(test.want, "|")
		_, got, found := strings.Cut(out.String(), "the best go on")
		if found != (test.want != "") || !strings.HasPrefix(got, sameTime+":") && found || !strings.Contains(got, budgets) {
			t.Errorf("%s: want %q\n%s", name, test.want, out.String())
		}
	}
}

// What was typed holds for the search too, which has its own flags for the rest.
func TestASuggestionKeepsTheFlags(t *testing.T) {
	for name, test := range map[string]struct{ flags, want []string }{
		"none":          {[]string{"--probe"}, nil},
		"numbers":       {[]string{"-n", "12", "--parallel=2", "--max-duration", "90m"}, []string{"--max-duration 1h30m0s", "-n 12", "-j 2"}},
		"words":         {[]string{"--name", "mine", "-e", "A=b c", "-e", "D", "--setting", "eta=4"}, []string{"-e 'A=b c'", "-e D", "--name mine", "--setting eta=4"}},
		"yes and no":    {[]string{"--replace", "--keep=false"}, []string{"--keep=false", "--replace=true"}},
		"its own flags": {[]string{"-p", "lr=uniform(0,1)", "--minimize", "loss", "--maximize", "acc"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, _, err := newRootCommand(false).Find([]string{"run"})
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(test.flags); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, givenFlags(cmd.Flags(), []string{"probe", "param", "minimize", "maximize"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLastWordsOfAProgram(t *testing.T) {
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	tests := map[string]struct{ printed, want string }{
		"nothing":        {"", ""},
		"blanks":         {"\n \n", ""},
		"a line":         {"no data\n", ". Its last lines:\n  no data"},
		"more than fits": {many.String(), ". Its last lines:\n  line 1992\n  line 1993\n  line 1994\n  line 1995\n  line 1996\n  line 1997\n  line 1998\n  line 1999"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var passed bytes.Buffer
			words := lastWords{to: &passed}
			if _, err := words.Write([]byte(test.printed)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, words.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if passed.String() != test.printed {
				t.Errorf("%d bytes were passed on, want %d", passed.Len(), len(test.printed))
			}
		})
	}
}
