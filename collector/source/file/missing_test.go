package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// missingOf reads a source to its end and returns what it says of missing
// metrics, and its other troubles.
func missingOf(t *testing.T, src collector.Source) (metrics []string, text string, others []string) {
	t.Helper()
	for _, err := range src.Points(t.Context()) {
		var missing *source.MissingError
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
			sourcetest.Shut(t, w)
			file, err := Open(Config{Path: path, Format: tc.format, Metrics: metrics, Explain: true, Drain: sourcetest.Closed()})
			if err != nil {
				t.Fatal(err)
			}
			stream, err := OpenStream(Config{Path: filepath.Join(dir, "stream"), Format: tc.format, Metrics: metrics, Explain: true, Drain: sourcetest.Closed()})
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

func TestASourceThatIsStoppedMissesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.log")
	if err := os.WriteFile(path, []byte("lr=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := Open(Config{Path: path, Format: "TEXT", Metrics: []string{"loss"}, Explain: true, Drain: sourcetest.Closed()})
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
