package probe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/probe"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/tensorboard"
)

// brief is a report in short.
type brief struct {
	Kind, Format string
	Found        []string
	Missing      []string
	Seen         []string
	Troubles     []string
}

func inShort(r *probe.Report) brief {
	b := brief{Kind: r.Kind, Format: r.Format, Seen: r.Seen}
	for _, m := range r.Metrics {
		text := fmt.Sprintf("%s: %d, %v to %v", m.Name, m.Count, m.First, m.Last)
		if m.Min != nil {
			text += fmt.Sprintf(", in [%v, %v]", *m.Min, *m.Max)
		}
		if m.FirstStep != nil {
			text += fmt.Sprintf(", steps %d to %d", *m.FirstStep, *m.LastStep)
		}
		if m.Begin != nil {
			text += fmt.Sprintf(", %v", m.End.Sub(*m.Begin))
		}
		b.Found = append(b.Found, text)
	}
	for _, m := range r.Missing {
		b.Missing = append(b.Missing, strings.TrimSpace(m.Name+" "+strings.Join(m.Near, " ")+m.Hint))
	}
	for _, t := range r.Troubles {
		b.Troubles = append(b.Troubles, fmt.Sprintf("%d: %s", t.Line, t.Text))
	}
	return b
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	return put(t, filepath.Join(t.TempDir(), name), []byte(text))
}

func run(t *testing.T, cfg probe.Config, metrics ...string) *probe.Report {
	t.Helper()
	target, err := probe.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := probe.Run(t.Context(), target, metrics)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestProbeFiles(t *testing.T) {
	tests := map[string]struct {
		name, text string
		cfg        probe.Config
		metrics    []string
		want       brief
	}{
		"text, with all that is in it": {
			name: "train.log", text: "epoch=1 loss=3 val/loss=4\nhello\nepoch=2 loss=nan val/loss=5\n",
			want: brief{Kind: "File", Format: "TEXT", Found: []string{
				"loss: 2, 3 to NaN, in [3, 3], steps 1 to 2", "val/loss: 2, 4 to 5, in [4, 5], steps 1 to 2"}, Seen: []string{}},
		},
		"text, with names that are not there": {
			name: "train.log", text: "loss=3 lr=1e-3\nacc: 0.5\n", metrics: []string{"los", "acc", "loss", "f1"},
			want: brief{Kind: "File", Format: "TEXT", Found: []string{"acc: 1, 0.5 to 0.5, in [0.5, 0.5]", "loss: 1, 3 to 3, in [3, 3]"},
				Missing: []string{"los loss", "f1"}, Seen: []string{"lr"}},
		},
		"text, by a filter": {
			name: "train.log", text: "loss: 3, acc: 0.5\n", metrics: []string{"loss"}, cfg: probe.Config{Filters: []string{`(\w+): ([\d.]+)`}},
			want: brief{Kind: "File", Format: "TEXT", Found: []string{"loss: 1, 3 to 3, in [3, 3]"}, Seen: []string{"acc"}},
		},
		"text that is JSON": {
			name: "train.log", text: `{"acc": 1}` + "\n", metrics: []string{"acc"}, cfg: probe.Config{Format: "TEXT"},
			want: brief{Kind: "File", Format: "TEXT", Found: []string{"acc: 1, 1 to 1, in [1, 1]"}, Seen: []string{}},
		},
		"lines that cannot be read": {
			name: "train.log", text: "a\nloss=1,5\n\nloss=2\nloss=3,5", metrics: []string{"loss"},
			want: brief{Kind: "File", Format: "TEXT", Found: []string{"loss: 1, 2 to 2, in [2, 2]"}, Seen: []string{}, Troubles: []string{
				`2: the value "1,5" of loss is ambiguous: write it with a decimal point and without commas, or capture it with a filter`,
				`5: the value "3,5" of loss is ambiguous: write it with a decimal point and without commas, or capture it with a filter`}},
		},
		"JSON, by its beginning": {
			name: "metrics", text: "\n{\"step\": 3, \"eval\": {\"loss\": 2}, \"timestamp\": 1700000000}\n{\"step\": 4, \"eval\": {\"loss\": 1}, \"timestamp\": 1700000060}\n",
			want: brief{Kind: "File", Format: "JSON", Found: []string{"eval.loss: 2, 2 to 1, in [1, 2], steps 3 to 4, 1m0s"}, Seen: []string{}},
		},
		"logfmt": {
			name: "train.log", text: `level=info loss=3 step=7 msg="a b"` + "\n", metrics: []string{"loss"}, cfg: probe.Config{Format: "LOGFMT"},
			want: brief{Kind: "File", Format: "LOGFMT", Found: []string{"loss: 1, 3 to 3, in [3, 3], steps 7 to 7"}, Seen: []string{}},
		},
		"logfmt, by its lines": {
			name: "train.log", text: "ts=2026-03-04T05:06:07Z level=info msg=x loss=3\n",
			want: brief{Kind: "File", Format: "LOGFMT", Found: []string{"loss: 1, 3 to 3, in [3, 3], 0s"}, Seen: []string{}},
		},
		"a table": {
			name: "metrics.csv", text: "epoch,loss,step,acc\n0,3,10,\n0,2,20,0.5\n", metrics: []string{"loss"},
			want: brief{Kind: "File", Format: "CSV", Found: []string{"loss: 2, 3 to 2, in [2, 3], steps 10 to 20"}, Seen: []string{"acc"}},
		},
		"nothing": {
			name: "empty.log", text: "", metrics: []string{"loss"},
			want: brief{Kind: "File", Format: "TEXT", Missing: []string{"loss"}, Seen: []string{}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.cfg.Path = write(t, test.name, test.text)
			r := run(t, test.cfg, test.metrics...)
			if diff := cmp.Diff(test.want, inShort(r)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if r.Bytes != int64(len(test.text)) {
				t.Errorf("%d bytes, want %d", r.Bytes, len(test.text))
			}
		})
	}
}

func TestProbeDirectories(t *testing.T) {
	table := write(t, "logs/version_0/metrics.csv", "step,loss\n1,3\n")
	root := filepath.Dir(filepath.Dir(filepath.Dir(table)))
	want := brief{Kind: "File", Format: "CSV", Found: []string{"loss: 1, 3 to 3, in [3, 3], steps 1 to 1"}, Seen: []string{}}
	if diff := cmp.Diff(want, inShort(run(t, probe.Config{Path: root}))); diff != "" {
		t.Errorf("tables (-want +got)\n%s", diff)
	}
}

func TestProbeSaysWhatItPassesOver(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"tb/events.out.tfevents.1": "", "lightning/version_0/metrics.csv": "step,loss\n1,3\n", "m.csv": "step,acc\n1,3\n",
		"m.json": "{}\n", "wandb/offline-run-1/files/output.log": "", "wandb/offline-run-1/run-1.wandb": "", "notes.md": "",
	} {
		put(t, filepath.Join(root, name), []byte(text))
	}
	at := func(name string) string { return filepath.Join(root, name) }
	r := run(t, probe.Config{Path: root})
	want := []probe.Passed{
		{What: "W&B files (*.wandb)", Count: 1, Example: at("wandb/offline-run-1/run-1.wandb"), Format: "WANDB"},
		{What: "tables (*.csv)", Count: 2, Example: at("lightning/version_0/metrics.csv"), Format: "CSV"},
		{What: "files of lines (*.log, *.txt, *.json, *.jsonl)", Count: 1, Example: at("m.json")},
	}
	if diff := cmp.Diff(want, r.PassedOver); diff != "" || r.Kind != probe.TensorFlowEvent {
		t.Errorf("%s (-want +got)\n%s", r.Kind, diff)
	}
	if r = run(t, probe.Config{Path: root, Format: "CSV"}); len(r.PassedOver) > 0 || len(r.Metrics) != 2 {
		t.Errorf("a format that is asked for: %d metrics, passed over %v", len(r.Metrics), r.PassedOver)
	}
}

func TestProbeShowsWhatTheProgramRecorded(t *testing.T) {
	root := t.TempDir()
	session := func(lr, optimizer string) []byte {
		return tensorboard.Start(tensorboard.Session{Started: time.Unix(1, 0), Parameters: []tensorboard.Parameter{{Name: "lr", Value: lr}, {Name: "opt", Value: optimizer}}})
	}
	for name, b := range map[string][]byte{
		"events.out.tfevents.1": session("0.10", "adam"), "run/events.out.tfevents.1": session("0.2", "sgd"), events.HparamsFile + ".t": session("3", "ours"),
	} {
		put(t, filepath.Join(root, name), b)
	}
	want := []probe.Recorded{{Name: "lr", Value: "0.1"}, {Name: "opt", Value: "adam"}, {Run: "run", Name: "lr", Value: "0.2"}, {Run: "run", Name: "opt", Value: "sgd"}}
	for _, metrics := range [][]string{nil, {"loss"}} {
		if diff := cmp.Diff(want, run(t, probe.Config{Path: root}, metrics...).Recorded); diff != "" {
			t.Errorf("asked for %v (-want +got)\n%s", metrics, diff)
		}
	}
}

func TestProbeEndpoint(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE val_loss gauge\nval_loss 3\nepoch 2\nup 1\n") // the client may be gone
	}))
	defer server.Close()
	r := run(t, probe.Config{Path: server.URL + "/metrics"}, "val_loss", "val_acc")
	want := brief{Kind: "PrometheusMetric", Found: []string{"val_loss: 1, 3 to 3, in [3, 3], steps 2 to 2"}, Seen: []string{"epoch", "up"},
		Missing: []string{"val_acc"}}
	if diff := cmp.Diff(want, inShort(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.Bytes == 0 {
		t.Error("the page has no size")
	}
}

func TestProbeCommand(t *testing.T) {
	var out, errs bytes.Buffer
	c := &probe.Command{Argv: []string{"sh", "-c", "echo loss=3 step=1; echo other=4 >&2; printf 'loss=2 step=2'; exit 3"}, Stdout: &out, Stderr: &errs}
	r, err := probe.Run(t.Context(), c, []string{"loss"})
	if err != nil {
		t.Fatal(err)
	}
	want := brief{Kind: "StdOut", Format: "TEXT", Found: []string{"loss: 2, 3 to 2, in [2, 3], steps 1 to 2"}, Seen: []string{"other"}}
	if diff := cmp.Diff(want, inShort(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.ExitCode == nil || *r.ExitCode != 3 || out.String() != "loss=3 step=1\nloss=2 step=2" || errs.String() != "other=4\n" {
		t.Errorf("code %v, output %q and %q", r.ExitCode, out.String(), errs.String())
	}
}

// TestProbeCommandReadsAll holds that a program that prints faster than it is
// read loses nothing, however much it is, and that no byte is counted twice.
func TestProbeCommandReadsAll(t *testing.T) {
	const lines = 3_000_000 // 78 MB, more than the collector's own 64 MiB
	script := fmt.Sprintf(`yes "loss=0.25 other text here" | head -n %d; printf last=1 >&2`, lines)
	for name, metrics := range map[string][]string{"a metric that is asked for": {"loss"}, "none that is asked for": nil, "one that is not there": {"acc"}} {
		t.Run(name, func(t *testing.T) {
			c := &probe.Command{Argv: []string{"sh", "-c", script}, Stdout: io.Discard, Stderr: io.Discard}
			r, err := probe.Run(t.Context(), c, metrics)
			if err != nil {
				t.Fatal(err)
			}
			want := brief{Kind: "StdOut", Format: "TEXT", Found: []string{fmt.Sprintf("loss: %d, 0.25 to 0.25, in [0.25, 0.25]", lines)}, Seen: []string{}}
			if name == "one that is not there" {
				want.Found, want.Missing, want.Seen = nil, []string{"acc"}, []string{"loss"}
			}
			if diff := cmp.Diff(want, inShort(r)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if size := int64(lines*len("loss=0.25 other text here\n") + len("last=1\n")); r.Bytes != size {
				t.Errorf("%d bytes, want %d", r.Bytes, size)
			}
		})
	}
}

func TestProbeCommandTakesItsOwnTime(t *testing.T) {
	c := &probe.Command{Argv: []string{"sh", "-c", "echo loss=1; sleep 0.3"}, Stdout: io.Discard, Stderr: io.Discard}
	r, err := probe.Run(t.Context(), c, []string{"loss"})
	if err != nil || r.Seconds < 0.3 {
		t.Errorf("error %v, %v seconds of a program that runs for 0.3", err, r.Seconds)
	}
}

func TestProbeOfAQuietProgram(t *testing.T) {
	c := &probe.Command{Argv: []string{"true"}, Stdout: io.Discard, Stderr: io.Discard}
	r, err := probe.Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(brief{Kind: "StdOut", Format: "TEXT", Seen: []string{}}, inShort(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestProbeCommandIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
	c := &probe.Command{Argv: []string{"sh", "-c", "echo begun; exec sleep 1000"}, Stdout: stop, Stderr: stop}
	if _, err := probe.Run(ctx, c, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestProbeFails(t *testing.T) {
	file, dir := write(t, "train.log", "loss=1\n"), t.TempDir()
	tests := map[string]struct {
		cfg     probe.Config
		want    string
		nothing bool
	}{
		"no file":                 {probe.Config{Path: filepath.Join(dir, "x")}, "does not exist", true},
		"an empty directory":      {probe.Config{Path: dir}, "holds no event files", true},
		"an unknown format":       {probe.Config{Path: file, Format: "YAML"}, `the format "YAML" is not known; there are TEXT, JSON, LOGFMT, CSV, WANDB`, false},
		"a directory of text":     {probe.Config{Path: dir, Format: "TEXT"}, "a directory holds CSV or WANDB", false},
		"filters for a table":     {probe.Config{Path: file, Format: "CSV", Filters: []string{"(a)(b)"}}, "filters are for the format TEXT", false},
		"a broken filter":         {probe.Config{Path: file, Filters: []string{"(a"}}, "(a", false},
		"neither file nor folder": {probe.Config{Path: os.DevNull}, "neither a file nor a directory", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := probe.Open(test.cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, probe.ErrNothing) != test.nothing {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
	c := &probe.Command{Argv: []string{"/no/such/program"}, Stdout: io.Discard, Stderr: io.Discard}
	if _, err := probe.Run(t.Context(), c, nil); !errors.Is(err, probe.ErrNothing) {
		t.Errorf("error %v, want that there is nothing", err)
	}
}

func TestReportAsJSON(t *testing.T) {
	r := run(t, probe.Config{Path: write(t, "a.log", "loss=nan\nloss=-inf\n")}, "loss", "acc")
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"first":"NaN","last":"-Inf","min":"-Inf","max":"-Inf"`, `"missing":[{"name":"acc","near":[]}]`, `"firstStep":null`, `"troubles":[]`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

func TestProbeBounds(t *testing.T) {
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "m%d=1\nloss=1,5\n", i)
	}
	text.WriteString(strings.Repeat("x", 3<<20) + "=1\nlast=1\n")
	r := run(t, probe.Config{Path: write(t, "a.log", text.String())}, "loss")
	if len(r.Troubles) != probe.MaxTroubles || r.MoreTroubles != 3000-probe.MaxTroubles+1 || len(r.Seen) > 1000 {
		t.Errorf("%d troubles and %d more, %d names", len(r.Troubles), r.MoreTroubles, len(r.Seen))
	}
}

// FuzzNames holds that the search for names takes anything, and that what it
// finds in text can be read as a metric.
func FuzzNames(f *testing.F) {
	f.Add("loss=3\nacc: 4\r{\"a\": 1}\n", "TEXT")
	f.Add(`{"a": {"b": [1, 2], "c": "3"}}`, "JSON")
	f.Add("a=1 b=\"2\" c=x", "LOGFMT")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, format string) {
		path := filepath.Join(dir, "a.log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		target, err := probe.Open(probe.Config{Path: path, Format: format})
		if err != nil {
			return
		}
		if _, err := probe.Run(t.Context(), target, nil); err != nil {
			t.Errorf("%q as %s: %v", text, format, err)
		}
	})
}
