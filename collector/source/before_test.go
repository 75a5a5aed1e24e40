package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/source/file"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// rewrite is a step that truncates a file and writes it anew.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// anything is a name that is read.
func anything(string) bool { return true }

// opened makes a source of a place.
type opened func(before *source.Before, state string, drain <-chan struct{}, clock source.Clock) (collector.Source, error)

func openWritten(path, format string) opened {
	return func(before *source.Before, state string, drain <-chan struct{}, clock source.Clock) (collector.Source, error) {
		return file.Open(file.Config{Path: path, Format: format, Metrics: []string{"loss"}, Before: before, State: state, Drain: drain, Clock: clock})
	}
}

func openEvents(dir string) opened {
	return func(before *source.Before, state string, drain <-chan struct{}, clock source.Clock) (collector.Source, error) {
		return events.New(events.Config{Dir: dir, Metrics: []string{"loss"}, Before: before, State: state, Drain: drain, Clock: clock})
	}
}

// afterBefore reads a place to its end, with one step of the program before each
// poll but the last. With kill, each step has a collector of its own, of which
// only the last can drain. Each identity counts once.
func afterBefore(t *testing.T, path string, open opened, kill bool, steps ...func()) (values []float64, notes map[string]bool) {
	t.Helper()
	state := t.TempDir()
	notes = map[string]bool{}
	seen := map[sourcetest.ID]bool{}
	drain := make(chan struct{})
	record := func(late bool) *source.Before {
		b, err := source.RecordBefore(path, filepath.Join(state, "before.json"), late, anything)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	before := record(false)
	var clocked sync.Mutex // tables are read side by side, and have one clock
	for last := false; !last; {
		ctx, cancel := context.WithCancel(t.Context())
		next := func() {
			switch {
			case len(steps) > 0:
				steps[0]()
				steps = steps[1:]
			case !last:
				last = true
				close(drain)
			}
		}
		next()
		now := time.Unix(0, 0)
		clock := source.Clock{
			Now: func() time.Time {
				clocked.Lock()
				defer clocked.Unlock()
				now = now.Add(2 * time.Second)
				return now
			},
			After: func(time.Duration) <-chan time.Time {
				clocked.Lock()
				defer clocked.Unlock()
				if kill && !last {
					cancel()
				} else {
					next()
				}
				return sourcetest.Quick().After(0)
			},
		}
		src, err := open(before, filepath.Join(state, "state"), drain, clock)
		if err != nil {
			t.Fatal(err)
		}
		for p, err := range src.Points(ctx) {
			if key := (sourcetest.ID{Source: p.Source, Seq: p.Seq}); err == nil && !seen[key] {
				seen[key] = true
				values = append(values, p.Value)
			}
			if err != nil && ctx.Err() == nil {
				notes[err.Error()] = true
			}
		}
		cancel()
		before = record(true)
	}
	return values, notes
}

// beforeCase is a place at which something lies before a program begins.
type beforeCase struct {
	path, format string
	before       map[string]string
	steps        []string // "+" appends, "=" truncates, "!" replaces by rename
	want         []float64
}

// prepare writes, an hour ago, what was there before.
func (c beforeCase) prepare(t *testing.T, dir string) {
	t.Helper()
	for p, text := range c.before {
		sourcetest.Append(t, filepath.Join(dir, p), []byte(text))
		past := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(dir, p), past, past); err != nil {
			t.Fatal(err)
		}
	}
}

// place is what the collector is told to read, and how.
func (c beforeCase) place(dir string) (string, opened) {
	place := filepath.Join(dir, c.path)
	switch {
	case c.format == "events":
		return place, openEvents(dir)
	case c.path == "/":
		return place, openWritten(dir+"/", c.format)
	}
	return place, openWritten(place, c.format)
}

// stepsIn are what the program does.
func (c beforeCase) stepsIn(t *testing.T, dir string) (steps []func()) {
	for _, s := range c.steps {
		path, text := c.path, s[1:]
		if c.path == "/" {
			path, text, _ = strings.Cut(text, ":")
		}
		path = filepath.Join(dir, path)
		steps = append(steps, func() {
			switch s[0] {
			case '+':
				sourcetest.Append(t, path, []byte(text))
			case '=':
				rewrite(t, path, text)
			case '!':
				rewrite(t, path+".tmp", text)
				if err := os.Rename(path+".tmp", path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	return steps
}

func TestWhatWasThereBeforeIsPassedOver(t *testing.T) {
	const old = "loss=-99\nloss=-98\n"
	table := "step,loss\n0,-99\n1,-98\n"
	cases := map[string]beforeCase{
		"a file is appended to":                          {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"+loss=1\n", "+loss=2\n"}, []float64{1, 2}},
		"its last line has no end":                       {"m.log", "TEXT", map[string]string{"m.log": old + "loss=-97"}, []string{"+\nloss=1\n", "+loss=2"}, []float64{1, 2}},
		"it is shorter than what is remembered of it":    {"m.log", "TEXT", map[string]string{"m.log": "x"}, []string{"+\nloss=1\n", "+loss=2\n"}, []float64{1, 2}},
		"a file is not written at all":                   {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"+"}, nil},
		"an empty file was there":                        {"m.log", "TEXT", map[string]string{"m.log": ""}, []string{"+loss=1\n"}, []float64{1}},
		"a file is truncated and written anew":           {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"=", "+loss=1\n", "+loss=2\n"}, []float64{1, 2}},
		"a file is written anew unseen, and shorter":     {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"=loss=1\n"}, []float64{1}},
		"a file is written anew unseen, and longer":      {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"=loss=1\nloss=2\nloss=3\nloss=4\n"}, []float64{1, 2, 3, 4}},
		"a program repeats an earlier run unseen":        {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"=" + old}, []float64{-99, -98}},
		"a file is written anew with what it had":        {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"=" + old + "loss=1\n", "+loss=2\n"}, []float64{1, 2}},
		"a file is replaced":                             {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"!loss=1\n", "+loss=2\n"}, []float64{1, 2}},
		"an appended file is truncated later":            {"m.log", "TEXT", map[string]string{"m.log": old}, []string{"+loss=1\n", "=loss=2\n", "+loss=3\n"}, []float64{1, 2, 3}},
		"a table is appended to":                         {"m.csv", "CSV", map[string]string{"m.csv": table}, []string{"+2,1\n", "+3,2\n"}, []float64{1, 2}},
		"a table is written anew":                        {"m.csv", "CSV", map[string]string{"m.csv": table}, []string{"=", "+step,loss\n0,1\n", "+1,2\n"}, []float64{1, 2}},
		"a table is written anew and begins as it did":   {"m.csv", "CSV", map[string]string{"m.csv": table}, []string{"=step,loss\n0,-99\n", "+1,2\n"}, []float64{-99, 2}},
		"a table is read, appended to and written whole": {"m.csv", "CSV", map[string]string{"m.csv": table}, []string{"=" + table + "2,1\n", "=" + table + "2,1\n3,2\n"}, []float64{1, 2}},
		"a program repeats a table":                      {"m.csv", "CSV", map[string]string{"m.csv": table}, []string{"=" + table}, []float64{-99, -98}},
		"a table of a directory, beside a new one":       {"/", "CSV", map[string]string{"version_0/m.csv": table}, []string{"+version_1/m.csv:step,loss\n0,1\n", "+version_0/m.csv:2,2\n"}, []float64{1, 2}},
		"a directory of W&B, with a new run":             {"/", "WANDB", map[string]string{"run-1/a.wandb": sourcetest.WandbHeader + string(sourcetest.WandbLog(0, "loss", -99))}, []string{"+run-2/b.wandb:" + sourcetest.WandbHeader + string(sourcetest.WandbLog(0, "loss", 1))}, []float64{1}},
		"event files, with a new one":                    {"/", "events", map[string]string{"version_0/events.out.tfevents.1": string(sourcetest.EventFile(100, "loss=-99", "loss=-98"))}, []string{"+version_1/events.out.tfevents.2:" + string(sourcetest.EventFile(200, "loss=1", "loss=2"))}, []float64{1, 2}},
		"event files, with a new one beside":             {"/", "events", map[string]string{"events.out.tfevents.1": string(sourcetest.EventFile(100, "loss=-99", "loss=-98"))}, []string{"+events.out.tfevents.2:" + string(sourcetest.EventFile(200, "loss=1", "loss=2"))}, []float64{1, 2}},
		"an event file that is written anew":             {"/", "events", map[string]string{"events.out.tfevents.1": string(sourcetest.EventFile(100, "loss=-99"))}, []string{"=events.out.tfevents.1:" + string(sourcetest.EventFile(200, "loss=1", "loss=2"))}, []float64{1, 2}},
		"an event file that grows":                       {"/", "events", map[string]string{"events.out.tfevents.1": string(sourcetest.EventFile(100, "loss=-99"))}, []string{"+events.out.tfevents.1:" + string(sourcetest.Event(300, 4, "loss", 1))}, []float64{1}},
	}
	for name, c := range cases {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed %v", name, kill), func(t *testing.T) {
				dir := t.TempDir()
				c.prepare(t, dir)
				place, open := c.place(dir)
				got, notes := afterBefore(t, place, open, kill, c.stepsIn(t, dir)...)
				slices.Sort(got) // tables are read side by side
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("values (-want +got)\n%s\nnotes %v", diff, notes)
				}
				said := false
				for n := range notes {
					said = said || strings.Contains(n, "before the program started")
				}
				if empty := c.before["m.log"] == "" && c.path == "m.log"; said == empty {
					t.Errorf("notes %v", notes)
				}
			})
		}
	}
}

func TestRecordBefore(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "m.log"), filepath.Join(dir, "before.json")
	sourcetest.Append(t, path, []byte("loss=-99\n"))
	if b, err := source.RecordBefore(path, state, true, anything); b != nil || err != nil {
		t.Errorf("of a program that may run: %+v, %v", b, err)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("that was remembered")
	}
	b, err := source.RecordBefore(path, state, false, anything)
	if err != nil || b.Note() == nil || !strings.Contains(b.Note().Error(), "its 9 bytes are passed over") {
		t.Fatalf("%+v, %v", b, err)
	}
	sourcetest.Append(t, path, []byte("loss=1\n"))
	again, err := source.RecordBefore(path, state, true, anything)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Size(path); got != 9 {
		t.Errorf("%d bytes are passed over after a restart, want 9", got)
	}
	rewrite(t, state, "{")
	if _, err := source.RecordBefore(path, state, true, anything); err == nil || !strings.Contains(err.Error(), state) {
		t.Errorf("a state that cannot be read: %v", err)
	}
}
