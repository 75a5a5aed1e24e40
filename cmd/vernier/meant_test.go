package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsMistypedHasASuggestion(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"a flag":                           {[]string{"run", "train.py", "--paralel", "4"}, "unknown flag: --paralel: did you mean --parallel?"},
		"a flag with a value behind =":     {[]string{"run", "--max-trails=4"}, "unknown flag: --max-trails: did you mean --max-trials?"},
		"a flag with one dash":             {[]string{"run", "-max-trials", "4"}, "unknown shorthand flag: 'm' in -max-trials: did you mean --max-trials?"},
		"a flag of every command":          {[]string{"best", "x", "--hme", "/h"}, "unknown flag: --hme: did you mean --home?"},
		"a flag like no other":             {[]string{"run", "--frobnicate"}, "unknown flag: --frobnicate"},
		"a letter":                         {[]string{"run", "-y"}, "unknown shorthand flag: 'y' in -y"},
		"a command":                        {[]string{"explian", "x"}, `vernier has no command "explian": did you mean vernier explain?`},
		"a command with a flag":            {[]string{"explian", "--watch", "x"}, `vernier has no command "explian": did you mean vernier explain?`},
		"a part of a command":              {[]string{"tensor"}, `vernier has no command "tensor": did you mean vernier tensorboard?`},
		"a command like no other":          {[]string{"frobnicate"}, `vernier has no command "frobnicate"`},
		"a command of a command":           {[]string{"store", "prun"}, `vernier store has no command "prun": did you mean vernier store prune?`},
		"a command that people do not run": {[]string{"supervize"}, `vernier has no command "supervize"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := newRootCommand(false)
			root.SilenceErrors, root.SilenceUsage = true, true
			root.SetArgs(append([]string{"--home", filepath.Join(t.TempDir(), "home")}, test.args...))
			root.SetOut(&bytes.Buffer{})
			err := root.ExecuteContext(t.Context())
			if exitCode(err) != exitUsage {
				t.Fatalf("code %d (%v), want %d", exitCode(err), err, exitUsage)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
