package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector/probe"
)

// collectCommand runs `vernier collect --probe ...`.
func collectCommand(t *testing.T, args ...string) (out, stderr string, err error) {
	t.Helper()
	cmd := newCollectCommand()
	var o, e bytes.Buffer
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SetArgs(append([]string{"--probe"}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

func TestCollectExitCodes(t *testing.T) {
	dir := t.TempDir()
	lines, script := filepath.Join(dir, "a.log"), filepath.Join(dir, "not-executable")
	for _, file := range []string{lines, script} {
		if err := os.WriteFile(file, []byte("loss=1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String() + "/metrics"
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"a metric that is there":            {[]string{lines, "-m", "loss"}, 0, ""},
		"a metric that is not there":        {[]string{lines, "-m", "acc"}, exitNotFound, "one metric was not found"},
		"two that are not there":            {[]string{lines, "-m", "acc", "-m", "f1"}, exitNotFound, "2 metrics were not found"},
		"one that is not there, as JSON":    {[]string{lines, "-m", "acc", "-o", "json"}, exitNotFound, "the metric acc was not found"},
		"a path that does not exist":        {[]string{filepath.Join(dir, "x")}, exitNotFound, "does not exist"},
		"a directory with nothing to read":  {[]string{t.TempDir()}, exitNotFound, "holds no event files"},
		"a refused connection":              {[]string{closed}, exitUnreachable, "refused"},
		"a page that is not there":          {[]string{server.URL + "/metrics"}, exitNotFound, "404"},
		"a command that is not found":       {[]string{"--", "no-such-program"}, exitNotFound, "no-such-program"},
		"a program that is not found":       {[]string{"--", "/no/such/program"}, exitNotFound, "cannot be found"},
		"a command that may not be run":     {[]string{"--", script}, exitFailure, "cannot be run"},
		"a command that fails":              {[]string{"--", "sh", "-c", "exit 3"}, 0, ""},
		"an unknown format":                 {[]string{lines, "--format", "yaml"}, exitUsage, "use one of TEXT, JSON, LOGFMT, CSV, WANDB"},
		"a format in small letters":         {[]string{lines, "--format", "text"}, 0, ""},
		"an unknown output, before it runs": {[]string{"-o", "xml", "--", "sh", "-c", "echo ran >&2"}, exitUsage, "table, json, yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := collectCommand(t, test.args...)
			if exitCode(err) != test.code || strings.Contains(stderr, "ran") {
				t.Fatalf("code %d (%v), want %d; printed %q", exitCode(err), err, test.code, stderr)
			}
			if err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestCollectSaysWhatItPassesOver(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"m.csv": "step,loss\n1,3\n", "m.json": "{\"loss\": 1}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := collectCommand(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	requireText(t, out, "Passed over: 1 files of lines", "m.json; name the file to read them")
	if err := os.WriteFile(filepath.Join(dir, "events.out.tfevents.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err = collectCommand(t, dir); err != nil {
		t.Fatal(err)
	}
	requireText(t, out, "tables (*.csv), such as "+filepath.Join(dir, "m.csv")+"; add --format CSV")
}

func TestCollectShowsWhatTheProgramRecorded(t *testing.T) {
	many := func(n int, run string) (all []probe.Recorded) {
		for i := range n {
			all = append(all, probe.Recorded{Run: run, Name: fmt.Sprintf("p%d", i), Value: "1"})
		}
		return all
	}
	var runs []probe.Recorded
	for i := range maxRunsShown + 2 {
		runs = append(runs, many(1, fmt.Sprintf("r%d", i))...)
	}
	tests := map[string]struct {
		recorded []probe.Recorded
		want     string
	}{
		"nothing":           {nil, ""},
		"in the directory":  {[]probe.Recorded{{Name: "lr", Value: "0.1"}, {Name: "batch", Value: "32"}}, "\nThe program recorded lr=0.1, batch=32\n"},
		"in a run":          {[]probe.Recorded{{Run: "a/b", Name: "lr", Value: "0.1"}}, "\nThe program recorded lr=0.1 in a/b\n"},
		"more than is read": {many(maxSeenShown+3, ""), "p19=1 and 3 more\n"},
		"in many runs":      {runs, "\nThe program recorded p0=1 in r4\n\nParameters were recorded in 2 more runs\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			writeRecorded(&b, tc.recorded)
			if tc.want == "" && b.Len() > 0 || !strings.HasSuffix(b.String(), tc.want) {
				t.Errorf("%q, want %q at its end", b.String(), tc.want)
			}
		})
	}
}

func TestCollectSaysOnceThatAMetricIsMissing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("loss 1\n")) // the client may be gone
	}))
	defer server.Close()
	out, _, err := collectCommand(t, server.URL, "-m", "absent_name")
	if all := out + err.Error(); strings.Count(all, "absent_name") != 1 {
		t.Errorf("printed:\n%s", all)
	}
}

func TestCollectSaysWhyNothingIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "train.log")
	if err := os.WriteFile(path, []byte("mean loss: 0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := collectCommand(t, path)
	if err != nil {
		t.Fatal(err)
	}
	requireText(t, out, "Nothing in it looks like a metric.", `  loss: it is written "loss: ...": print loss=..., or add --filter`)
}

func TestCollectReadsStandardInput(t *testing.T) {
	cmd := newCollectCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetIn(strings.NewReader("{\"loss\": 3}\n"))
	cmd.SetArgs([]string{"--probe", "-", "-m", "loss", "--format", "json"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	requireText(t, out.String(), "standard input (StdOut, JSON): 12 bytes", "loss")
}
