package file

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// itemsOf feeds a text, a line each minute, and returns each point as metric, value and
// minute, those that came before the end first.
func itemsOf(t *testing.T, cfg Config, lines ...string) (live, late []string) {
	t.Helper()
	began := time.Unix(1_700_000_000, 0)
	now, to := began, &live
	cfg.Clock = source.Clock{}.OrReal()
	l, err := newWantedLines(cfg, "stdout", func(p collector.Point, err error) bool {
		if err == nil {
			name := p.Metric
			if strings.HasSuffix(p.Source, collector.ItemSource) {
				name = "(" + name + ")"
			}
			*to = append(*to, fmt.Sprintf("%s %v at %v", name, p.Value, p.Time.Sub(began).Minutes()))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	l.now = func() time.Time { return now }
	at := int64(0)
	for _, line := range lines {
		l.feed(at, []byte(line+"\n"))
		at, now = at+int64(len(line))+1, now.Add(time.Minute)
	}
	to = &late
	l.last()
	l.end()
	return live, late
}

func TestItemsCountWhereNothingElseComes(t *testing.T) {
	tests := map[string]struct {
		cfg              Config
		lines            []string
		wantLive, wantAt []string
	}{
		"items alone are read at the end, with their times": {lines: []string{"loss: 0.5", "{'loss': 0.25}"},
			wantAt: []string{"(loss) 0.5 at 0", "(loss) 0.25 at 1"}},
		"name=value replaces those before it": {lines: []string{"loss: 0.01", "loss: 0.02", "loss=0.5", "loss: 0.03"}, wantLive: []string{"loss 0.5 at 2"}},
		"without a sign":                      {lines: []string{"loss 0.5", "val_loss 0.3"}, wantAt: []string{"(loss) 0.5 at 0"}},
		"of one metric alone": {lines: []string{"loss=0.5 - acc: 0.9", "acc: 0.8, loss: 3"}, wantLive: []string{"loss 0.5 at 0"},
			wantAt: []string{"(acc) 0.9 at 0", "(acc) 0.8 at 1"}},
		"all are in order of the text":    {lines: []string{"loss: 1", "acc: 2", "loss: 3"}, wantAt: []string{"(loss) 1 at 0", "(acc) 2 at 1", "(loss) 3 at 2"}},
		"a filter is what the user wants": {cfg: Config{Filters: []string{`(loss) is (\d+)`}}, lines: []string{"loss is 3", "acc: 2"}, wantLive: []string{"loss 3 at 0"}},
		"JSON":                            {cfg: Config{Format: "JSON"}, lines: []string{`{"x": "loss: 3"}`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Metrics = []string{"loss", "acc"}
			if tc.cfg.Format == "" {
				tc.cfg.Format = "TEXT"
			}
			live, late := itemsOf(t, tc.cfg, tc.lines...)
			if d := cmp.Diff([][]string{tc.wantLive, tc.wantAt}, [][]string{live, late}); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestItemsThatAreTornAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Put(t, dir, "whole", []byte("loss: 0.5\nloss: 0.25"))
	sourcetest.Put(t, dir, "torn", []byte("loss: 0.5\nloss: 0."))
	for name, want := range map[string][]float64{"whole": {0.5, 0.25}, "torn": {0.5}} { // what is torn is said
		src, err := Open(Config{Path: filepath.Join(dir, name), Format: "TEXT", Metrics: []string{"loss"}, Drain: sourcetest.Closed()})
		if err != nil {
			t.Fatal(err)
		}
		points, errs := sourcetest.Collected(t, src)
		var values []float64
		for _, p := range points {
			values = append(values, p.Value)
		}
		if d := cmp.Diff(want, values); d != "" || (len(errs) > 0) != (name == "torn") {
			t.Errorf("%s: %s, it says %q", name, d, errs)
		}
	}
}

// What is held is bounded, and keeps the extremes and the end.
func TestItemsThatAreHeldAreBounded(t *testing.T) {
	var lines []string
	for i := range 5 * maxHeld {
		v := 0.5
		if i == 777 {
			v = 0.01
		}
		lines = append(lines, fmt.Sprintf("step %d: loss: %v", i, v))
	}
	_, late := itemsOf(t, Config{Format: "TEXT", Metrics: []string{"loss", "other", "third"}}, strings.Join(lines, "\n"))
	if len(late) > maxHeld/3 {
		t.Errorf("%d points are held", len(late))
	}
	if !strings.Contains(strings.Join(late, ","), " 0.01 ") {
		t.Error("the least value is lost")
	}
}

func TestItemsAreSaidToBeLate(t *testing.T) {
	var said string
	now := time.Unix(1_700_000_000, 0)
	l, err := newWantedLines(Config{Format: "TEXT", Metrics: []string{"loss"}, Explain: true, Clock: source.Clock{}.OrReal()}, "stdout", func(_ collector.Point, err error) bool {
		said = err.Error()
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	l.now = func() time.Time { return now }
	for i := range int64(3) {
		l.feed(i*14, []byte("{'loss': 0.5}\n"))
		now = now.Add(time.Minute)
	}
	if !strings.Contains(said, "use the filter") || !strings.Contains(said, "loss is read when the program ends") || strings.Contains(said, "not found") {
		t.Errorf("it says %q", said)
	}
}
