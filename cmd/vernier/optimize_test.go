package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// optimize runs the command with a space file and gives its output.
func optimize(t *testing.T, space, in string, args ...string) (out string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "space.json")
	if err := os.WriteFile(file, []byte(space), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "SPACE", file)
	}
	root := newRootCommand(false)
	var stdout, stderr bytes.Buffer
	root.SetIn(strings.NewReader(in))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(append([]string{"optimize"}, args...))
	err = root.ExecuteContext(t.Context())
	if stderr.Len() > 0 {
		t.Errorf("on standard error: %s", stderr.String())
	}
	return stdout.String(), err
}

func TestOptimize(t *testing.T) {
	const space = `{"parameters":[{"name":"x","type":"int","min":1,"max":2}]}`
	in := strings.Join([]string{
		`{"ask":2}`, `{"report":{"number":0,"step":1,"value":3}}`, `{"tell":{"number":0,"state":"succeeded","value":3}}`,
		`{"report":{"number":1,"step":1,"value":9}}`, `nonsense`, `{"ask":1}`,
	}, "\n")
	got, err := optimize(t, space, in, "--space", "SPACE", "--algorithm", "grid", "--setting", "random_state=5", "--seed", "3",
		"--stopper", "threshold", "--stopper-setting", "upper=5", "--deadline", "10s")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(got, "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[4], `{"error":"the line is no JSON`) {
		t.Fatalf("got %s", got)
	}
	stopped := strings.HasPrefix(lines[3], `{"stop":true,"why":"`)
	want := []string{`{"stop":false}`, `{"ok":true}`, lines[3], lines[4], `{"trials":[],"exhausted":true}`, ""}
	if diff := cmp.Diff(want, lines[1:]); diff != "" || !stopped {
		t.Errorf("(-want +got):\n%s\nstopped %v", diff, stopped)
	}
}

func TestOptimizeSaysWhatIsWrong(t *testing.T) {
	const space = `{"parameters":[{"name":"x","type":"double","min":1,"max":2}]}`
	cases := map[string]struct {
		space    string
		args     []string
		wantCode int
		wantSaid string
	}{
		"no space":                 {space, []string{"--algorithm", "random"}, exitUsage, "--space is missing"},
		"a file that is not there": {space, []string{"--space", "SPACE.not", "--algorithm", "random"}, exitNotFound, "correct --space"},
		"a space that is wrong":    {`{"parameters":[]}`, []string{"--space", "SPACE", "--algorithm", "random"}, exitInvalid, "space.json: parameters"},
		"a space with two faults": {`{"parameters":[{"name":"x","type":"float"},{"name":"y","type":"real"}]}`, []string{"--space", "SPACE"}, exitInvalid,
			"space.json: 2 faults\n  parameters[0].type is \"float\"; it must be one of double, int, discrete, categorical\n  parameters[1].type is"},
		"two parameters that an algorithm cannot search": {`{"parameters":[{"name":"x","type":"double","min":1,"max":2},{"name":"y","type":"double","min":1,"max":2}]}`,
			[]string{"--space", "SPACE", "--algorithm", "grid"}, exitInvalid, "the algorithm grid cannot search it: 2 faults\n  parameter \"x\""},
		"a space for another algorithm": {space, []string{"--space", "SPACE", "--algorithm", "grid"}, exitInvalid, "the algorithm grid cannot search it"},
		"an unknown algorithm":          {space, []string{"--space", "SPACE", "--algorithm", "guess"}, exitUsage, "use one of asha, auto"},
		"a misspelled algorithm":        {space, []string{"--space", "SPACE", "--algorithm", "rnadom"}, exitUsage, "did you mean random?"},
		"a setting without a value":     {space, []string{"--space", "SPACE", "--algorithm", "random", "--setting", "a"}, exitUsage, "name=value"},
		"an unknown setting":            {space, []string{"--space", "SPACE", "--algorithm", "random", "--setting", "a=b"}, exitUsage, "--describe random"},
		"a seed below zero":             {space, []string{"--space", "SPACE", "--algorithm", "random", "--seed", "-1"}, exitUsage, "--seed"},
		"a deadline below zero":         {space, []string{"--space", "SPACE", "--algorithm", "random", "--deadline", "-1s"}, exitUsage, "below zero"},
		"an unknown rule":               {space, []string{"--space", "SPACE", "--algorithm", "random", "--stopper", "x"}, exitUsage, "medianstop"},
		"a wrong setting of a rule":     {space, []string{"--space", "SPACE", "--algorithm", "random", "--stopper", "medianstop", "--stopper-setting", "x=1"}, exitUsage, "--describe medianstop"},
		"a rule for two objectives": {`{"parameters":[{"name":"x","type":"double","min":1,"max":2}],"objectives":[{"name":"a"},{"name":"b"}]}`,
			[]string{"--space", "SPACE", "--stopper", "medianstop"}, exitUsage, "one objective"},
		"a setting of no rule":         {space, []string{"--space", "SPACE", "--algorithm", "random", "--stopper-setting", "x=1"}, exitUsage, "name the rule"},
		"an argument":                  {space, []string{"SPACE"}, exitUsage, ""},
		"a description of what is not": {space, []string{"--describe", "x"}, exitUsage, "see --list"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := optimize(t, c.space, `{"ask":1}`, c.args...)
			if exitCode(err) != c.wantCode || !strings.Contains(err.Error(), c.wantSaid) {
				t.Errorf("code %d (%v), want %d and %q", exitCode(err), err, c.wantCode, c.wantSaid)
			}
			if out != "" {
				t.Errorf("standard output: %s", out)
			}
		})
	}
}

func TestOptimizeListsAndDescribes(t *testing.T) {
	list, err := optimize(t, "", "", "--list")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(algorithm.Names(), stop.Names()...) {
		requireText(t, list, "\n"+name+" ")
		text, err := optimize(t, "", "", "--describe", name)
		if err != nil {
			t.Error(err)
		}
		if a, ok := algorithm.Get(name); ok {
			requireText(t, text, name+" (algorithm)\n"+a.Summary)
			for _, s := range a.Settings {
				requireText(t, text, s.Name, s.Default, s.Help)
			}
		}
		if r, ok := stop.Get(name); ok {
			requireText(t, text, name+" (stopping rule)\n"+r.Summary)
			for _, s := range r.Settings {
				requireText(t, text, s.Name, s.Default, s.Help)
			}
		}
	}
}
