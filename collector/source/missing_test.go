package source

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// missingOf reads a source to its end and returns what it says of missing
// metrics, and its other troubles.
func missingOf(t *testing.T, src collector.Source) (metrics []string, text string, others []string) {
	t.Helper()
	for _, err := range src.Points(t.Context()) {
		var missing *MissingError
		switch {
		case errors.As(err, &missing):
			metrics, text = append(metrics, missing.Metrics...), text+missing.Text
		case err != nil:
			others = append(others, err.Error())
		}
	}
	return metrics, text, others
}

func TestSourcesOfLinesSayWhatIsMissing(t *testing.T) {
	tests := map[string]struct {
		format, text string
		wantMissing  []string
		wantText     string
		wantOther    string
	}{
		"nothing is missing":                       {format: "TEXT", text: "loss=1\nacc=2"},
		"the last line alone has what was missing": {format: "TEXT", text: strings.Repeat("loss=1\n", 100_000) + "acc=2"},
		"an additional metric is mistyped": {format: "TEXT", text: "loss=1 accuracy=2\n",
			wantMissing: []string{"acc"}, wantText: "acc was not found: did you mean accuracy?; there is loss, accuracy"},
		"all are written in another way": {format: "TEXT", text: "{\"loss\": 1, \"acc\": 2}\n",
			wantMissing: []string{"loss", "acc"}, wantText: "loss was not found: the lines are JSON: use format JSON; acc was not found: as above"},
		"a table is read as JSON": {format: "JSON", text: "epoch,loss,acc\n1,2,3\n", wantMissing: []string{"loss", "acc"},
			wantText:  "loss was not found: this looks like CSV: use format CSV; acc was not found: as above",
			wantOther: "not a JSON object"},
		"nothing was written": {format: "TEXT", wantOther: "nothing"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			metrics := []string{"loss", "acc"}
			dir := t.TempDir()
			path := filepath.Join(dir, "m.log")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			w := newWriter(t, filepath.Join(dir, "stream"), 0)
			say(t, w.Lane(), "%s", tc.text)
			shut(t, w)
			parser := func() parse.Line {
				p, err := parse.NewLine(tc.format, metrics, nil)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			file, err := NewWritten(Written{Path: path, Format: tc.format, Metrics: metrics, Explain: true, Drain: isClosed()})
			if err != nil {
				t.Fatal(err)
			}
			stream, err := NewStream(StreamConfig{Dir: filepath.Join(dir, "stream"), Parser: parser(), Drain: isClosed(),
				Wanted: &Wanted{Format: tc.format, Metrics: metrics}})
			if err != nil {
				t.Fatal(err)
			}
			for kind, src := range map[string]collector.Source{"file": file, "stream": stream} {
				missing, text, others := missingOf(t, src)
				if d := cmp.Diff([]any{tc.wantMissing, tc.wantText}, []any{missing, text}); d != "" {
					t.Errorf("%s: %s", kind, d)
				}
				if got := strings.Join(others, "; "); (tc.wantOther == "") != (got == "") || !strings.Contains(got, tc.wantOther) {
					t.Errorf("%s: troubles %q, want %q", kind, got, tc.wantOther)
				}
			}
		})
	}
}

func TestAPushSaysWhatIsMissing(t *testing.T) {
	tests := map[string]struct {
		send func(p *pushed)
		want string
	}{
		"nothing was pushed": {func(*pushed) {}, "push: loss, acc was not found: the program pushed nothing"},
		"another name was reported": {func(p *pushed) { p.report(`{"loss": 1, "step": 3, "accuracy": 2}`) },
			"push: acc was not found: did you mean accuracy?; there is loss, accuracy"},
		"all were reported": {func(p *pushed) { p.report(`{"loss": 1, "acc": 3, "accuracy": 2}`) }, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := startPush(t, filepath.Join(t.TempDir(), "journal"), "loss", "acc")
			tc.send(p)
			close(p.drain)
			if !<-p.done {
				t.Fatal("the source did not end")
			}
			if got := strings.Join(p.rec.errs, "; "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Few messages on missing metrics are kept, so there is one for all of them.
func TestAllThatIsMissingIsSaidAtOnce(t *testing.T) {
	metrics := []string{"loss", "acc", "f1", "recall", "auc"}
	dir := t.TempDir()
	put(t, dir, "tfevents", eventFileOf(1, "loss=1", "accuracy=2"))
	appendFile(t, filepath.Join(dir, "run-a.wandb"), append([]byte(wandbHeader), wandbLog(0, "loss", 3)...))
	e := serve(t, httptest.NewServer, text("loss 1\nacc_total 1\n"))
	tests := map[string]struct {
		open func() (collector.Source, error)
		want string
	}{
		"events": {func() (collector.Source, error) {
			return NewEventDir(EventDirConfig{Dir: dir, Metrics: metrics, Drain: isClosed(), Clock: quick})
		}, `tfevent: the metrics f1, recall, auc were not found; there is "accuracy", "loss"`},
		"W&B": {func() (collector.Source, error) {
			return NewWandbDir(WandbDirConfig{Dir: dir, Metrics: metrics, Drain: isClosed(), Clock: quick})
		}, `the metric acc was never logged; the metric f1 was never logged; the metric recall was never logged; the metric auc was never logged; there is "loss"`},
		"a page": {func() (collector.Source, error) {
			return NewScrape(ScrapeConfig{URL: e.URL, Metrics: metrics, LastPatience: scrapeTimeout, Drain: e.drain, Clock: quick})
		}, e.URL + " never showed the metric acc; it shows acc_total; never showed the metric f1; it shows none that is like it; " +
			"never showed the metric recall; it shows none that is like it; never showed the metric auc; it shows none that is like it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			src, err := tc.open()
			if err != nil {
				t.Fatal(err)
			}
			missing, text, _ := missingOf(t, src)
			if d := cmp.Diff(tc.want, text); d != "" || len(missing) < 3 {
				t.Errorf("%q are missing; it says (-want +got):\n%s", missing, d)
			}
		})
	}
}

// What is pushed by way of MLflow, Trainer or report_metrics comes by wants.
func TestUnwantedNamesAreRemembered(t *testing.T) {
	p := &Push{wanted: map[string]bool{"loss": true}}
	for _, name := range []string{"loss", "val_loss", "", "step", "val_loss", strings.Repeat("x", 300)} {
		p.wants(name)
	}
	for i := range 1000 {
		p.wants("n" + strings.Repeat("1", i%150))
	}
	list := p.others.list()
	if len(list) != maxNames || list[0] != "val_loss" {
		t.Errorf("%d names, the first is %q", len(list), list[0])
	}
}

func TestASourceThatIsStoppedMissesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.log")
	if err := os.WriteFile(path, []byte("lr=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := NewWritten(Written{Path: path, Format: "TEXT", Metrics: []string{"loss"}, Explain: true, Drain: isClosed()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range src.Points(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}
