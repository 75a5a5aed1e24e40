package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		"all are written in another way": {format: "TEXT", text: "{\"loss\": 1, \"acc\": 2}\n"},
		"no number": {format: "TEXT", text: "loss: [1], acc: [1]\n", wantMissing: []string{"loss", "acc"},
			wantText: `loss was not found: it is written "loss: [1]", which is not a number: print the number alone, as .item() gives it; ` +
				`acc was not found: it is written "acc: [1]", which is not a number: print the number alone, as .item() gives it`},
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

// A program that goes on for hours is not waited for to say that a name is wrong.
func TestWhatIsNotFoundIsSaidWhileTheProgramRuns(t *testing.T) {
	tests := map[string]struct {
		// every minute the program writes one of these.
		texts []string
		want  []string
	}{
		"after two minutes, once": {[]string{"lr=1 accuracy=2\n", "accuracy=2\n", "loss=1\n", "accuracy=3\n", "accuracy=4\n"},
			[]string{"so far acc was not found: did you mean accuracy?; there is lr, accuracy, loss"}},
		"again when less is missing": {[]string{"lr=1\n", "lr=1\n", "lr=1\n", "acc=3\n"},
			[]string{"so far loss was not found; acc was not found; there is lr", "so far loss was not found; there is lr, acc"}},
		"what has come is not said":          {[]string{"loss=1\n", "acc=2\n", "lr=1\n", "lr=1\n"}, nil},
		"nothing while there is no number":   {[]string{"begin\n", "load\n", "load\n", "load\n"}, nil},
		"the first number may come later on": {[]string{"begin\n", "load\n", "load\n", "lr=3\n", "load\n", "load\n"}, []string{"so far loss was not found; acc was not found; there is lr"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			var said []string
			l, err := newWantedLines(Config{Format: "TEXT", Metrics: []string{"loss", "acc"}, Explain: true, Clock: source.Clock{}.OrReal()}, "stdout", func(_ collector.Point, err error) bool {
				var missing *source.MissingError
				if errors.As(err, &missing) && missing.NotYet() {
					said = append(said, missing.Error())
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			l.now = func() time.Time { return now }
			at := int64(0)
			for _, text := range tc.texts {
				l.feed(at, []byte(text))
				at, now = at+int64(len(text)), now.Add(time.Minute)
			}
			if d := cmp.Diff(tc.want, said); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
