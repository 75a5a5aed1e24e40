package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// quick is a clock on which every pause lasts a millisecond.
var quick = Clock{After: func(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }}

func lossParser(t testing.TB) parse.Line {
	t.Helper()
	p, err := parse.NewText([]string{"loss"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// id is the identity of a point.
type id struct {
	source string
	seq    int64
}

// record is what readers of one origin have seen together.
type record struct {
	mu     sync.Mutex
	points map[id]collector.Point
	values map[float64]bool
	errs   []string
	again  int // points that came with an identity already seen
}

func newRecord() *record {
	return &record{points: map[id]collector.Point{}, values: map[float64]bool{}}
}

func (r *record) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.values)
}

// add takes a point; it fails the test if its identity means another point.
func (r *record) add(t testing.TB, p collector.Point) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := id{p.Source, p.Seq}
	if old, ok := r.points[key]; ok {
		r.again++
		if old.Value != p.Value || old.Metric != p.Metric {
			t.Errorf("%v is both %s=%v and %s=%v", key, old.Metric, old.Value, p.Metric, p.Value)
		}
	}
	r.points[key] = p
	r.values[p.Value] = true
}

func (r *record) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err.Error())
}

// follow reads src to its end, or until limit points were seen.
func (r *record) follow(ctx context.Context, t testing.TB, src collector.Source, limit int) (ended bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := map[string]int64{}
	n := 0
	for p, err := range src.Points(ctx) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				r.fail(err)
			}
			continue
		}
		if before, ok := last[p.Source]; ok && p.Seq <= before {
			t.Errorf("%s: Seq %d comes after %d", p.Source, p.Seq, before)
		}
		last[p.Source] = p.Seq
		r.add(t, p)
		if n++; n == limit {
			return false
		}
	}
	return true
}

// wantAll checks that the values 0.5, 1.5, ... were read, each under one
// identity.
func (r *record) wantAll(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		if !r.values[float64(i)+0.5] {
			t.Errorf("the value %d.5 is missing", i)
		}
	}
	if len(r.values) != n || len(r.points) != n {
		t.Errorf("got %d values under %d identities, want %d", len(r.values), len(r.points), n)
	}
	for key, p := range r.points {
		if float64(p.Step)+0.5 != p.Value {
			t.Errorf("%v: step %d with value %v", key, p.Step, p.Value)
		}
	}
}

func TestFileReadsEveryWriter(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "metrics.log")
			drain := make(chan struct{})
			src, err := NewFile(FileConfig{Path: path, Parser: lossParser(t), Drain: drain, Clock: quick})
			if err != nil {
				t.Fatal(err)
			}
			rec := newRecord()
			done := make(chan bool)
			go func() { done <- rec.follow(t.Context(), t, src, -1) }()
			w := &writer{t: t, path: path, seen: rec.seen}
			write(w)
			close(drain)
			if !<-done {
				t.Error("the source did not end by itself")
			}
			rec.wantAll(t, w.next)
			if rec.again != 0 {
				t.Errorf("%d points came twice", rec.again)
			}
			if diff := cmp.Diff([]string(nil), rec.errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// A reader that is killed at any point and started again sees the same
// identities as one that lives.
func TestFileKilledAndStartedAgain(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "metrics.log")
			drain := make(chan struct{})
			rec := newRecord()
			random := rand.New(rand.NewPCG(7, uint64(len(name))))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for lives := 0; ; lives++ {
					src, err := NewFile(FileConfig{
						Path: path, Parser: lossParser(t), Drain: drain, Clock: quick, State: filepath.Join(dir, "state"),
					})
					if err != nil {
						t.Error(err)
						return
					}
					limit := -1
					if lives < 30 {
						limit = 1 + random.IntN(100)
					}
					if rec.follow(t.Context(), t, src, limit) {
						return
					}
				}
			}()
			w := &writer{t: t, path: path, seen: rec.seen}
			write(w)
			close(drain)
			<-done
			rec.wantAll(t, w.next)
		})
	}
}

func TestFileSeqIsTheOffset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.log")
	text := "hello\nloss=1 loss=2\n\n  x loss = 3"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, p := range drained(t, FileConfig{Path: path, Parser: lossParser(t)}) {
		got = append(got, p.Seq)
		if !strings.HasPrefix(text[p.Seq:], "loss") {
			t.Errorf("Seq %d is not at a match", p.Seq)
		}
	}
	if diff := cmp.Diff([]int64{6, 13, 25}, got); diff != "" {
		t.Errorf("Seq (-want +got):\n%s", diff)
	}
}

// drained reads what a file holds now.
func drained(t *testing.T, cfg FileConfig) []collector.Point {
	t.Helper()
	drain := make(chan struct{})
	close(drain)
	cfg.Drain = drain
	src, err := NewFile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var points []collector.Point
	for p, err := range src.Points(t.Context()) {
		if err != nil {
			t.Error(err)
			continue
		}
		points = append(points, p)
	}
	return points
}

// Each file at a path, and each truncation, has a number that stays its own.
func TestFileSeqAfterGenerations(t *testing.T) {
	dir := t.TempDir()
	cfg := FileConfig{Path: filepath.Join(dir, "m.log"), Parser: lossParser(t), State: filepath.Join(dir, "state")}
	write := func(s string) {
		if err := os.WriteFile(cfg.Path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seqs := func() (out []int64) {
		for _, p := range drained(t, cfg) {
			out = append(out, p.Seq)
		}
		return out
	}
	write("loss=1\n")
	first := seqs()
	write("loss=2\nloss=3\n") // truncated and overtaken while nobody looked
	second := seqs()
	if err := os.Rename(cfg.Path, cfg.Path+".1"); err != nil {
		t.Fatal(err)
	}
	write("loss=4\n")
	third := seqs()
	const g = 1 << generationShift
	want := [][]int64{{0}, {g, g + 7}, {g, g + 7, 2 * g}}
	if diff := cmp.Diff(want, [][]int64{first, second, third}); diff != "" {
		t.Errorf("Seq (-want +got):\n%s", diff)
	}
}

func TestFileTroublesAreSaid(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, dir string) FileConfig
		want    []string
	}{
		"a file that is never written": {
			prepare: func(t *testing.T, dir string) FileConfig { return FileConfig{Path: filepath.Join(dir, "none")} },
			want:    []string{"none was never written"},
		},
		"a directory in place of the file": {
			prepare: func(t *testing.T, dir string) FileConfig { return FileConfig{Path: dir} },
			want:    []string{"is not a regular file", "was never written"},
		},
		"a state that is damaged": {
			prepare: func(t *testing.T, dir string) FileConfig {
				cfg := FileConfig{Path: filepath.Join(dir, "m"), State: filepath.Join(dir, "state")}
				for _, path := range []string{cfg.Path, cfg.State} {
					if err := os.WriteFile(path, []byte("{\n"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				return cfg
			},
			want: []string{"state of an earlier collector is lost"},
		},
		"a state that cannot be written": {
			prepare: func(t *testing.T, dir string) FileConfig {
				cfg := FileConfig{Path: filepath.Join(dir, "m"), State: filepath.Join(dir, "no", "state")}
				if err := os.WriteFile(cfg.Path, []byte("loss=1\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return cfg
			},
			want: []string{"remembering the files that were seen"},
		},
		"a line that is too long": {
			prepare: func(t *testing.T, dir string) FileConfig {
				cfg := FileConfig{Path: filepath.Join(dir, "m")}
				text := "loss=1 " + strings.Repeat("x", 3<<20) + " loss=2\nloss=3\n"
				if err := os.WriteFile(cfg.Path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return cfg
			},
			want: []string{"the line at byte 0 is longer than 1048576 bytes"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := tc.prepare(t, t.TempDir())
			drain := make(chan struct{})
			close(drain)
			cfg.Parser, cfg.Drain = lossParser(t), drain
			src, err := NewFile(cfg)
			if err != nil {
				t.Fatal(err)
			}
			rec := newRecord()
			if !rec.follow(t.Context(), t, src, -1) {
				t.Error("the source did not end")
			}
			if len(rec.errs) != len(tc.want) {
				t.Fatalf("got errors %q, want %q", rec.errs, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(rec.errs[i], want) {
					t.Errorf("got error %q, want one with %q", rec.errs[i], want)
				}
			}
			if name == "a line that is too long" {
				if got := slices.Sorted(maps.Keys(rec.values)); !slices.Equal(got, []float64{1, 3}) {
					t.Errorf("got values %v, want those before the cut and after the line", got)
				}
			}
		})
	}
}

// A value that stands where a long line is cut must not be read in half.
func TestFileDoesNotTearANumberAtTheCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	text := strings.Repeat("x", maxLine-len(" loss=1")) + " loss=123456\nloss=2\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	drain := make(chan struct{})
	close(drain)
	src, err := NewFile(FileConfig{Path: path, Parser: lossParser(t), Drain: drain})
	if err != nil {
		t.Fatal(err)
	}
	rec := newRecord()
	rec.follow(t.Context(), t, src, -1)
	if got := slices.Sorted(maps.Keys(rec.values)); !slices.Equal(got, []float64{2}) {
		t.Errorf("got values %v, want [2]", got)
	}
}

func TestFileEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan struct{})
	var once sync.Once
	never := Clock{After: func(time.Duration) <-chan time.Time {
		once.Do(func() { close(waiting) })
		return nil
	}}
	src, err := NewFile(FileConfig{Path: filepath.Join(t.TempDir(), "none"), Parser: lossParser(t), Clock: never})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-waiting
		cancel()
	}()
	var last error
	for _, err := range src.Points(ctx) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the last error is %v, want that of the context", last)
	}
}

// A drain wakes a source that waits, however long the pause.
func TestFileDrainEndsThePause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	drain := make(chan struct{})
	var once sync.Once
	clock := Clock{After: func(time.Duration) <-chan time.Time {
		once.Do(func() {
			if err := os.WriteFile(path, []byte("loss=1"), 0o644); err != nil {
				t.Error(err)
			}
			close(drain)
		})
		return nil
	}}
	src, err := NewFile(FileConfig{Path: path, Parser: lossParser(t), Drain: drain, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	rec := newRecord()
	if !rec.follow(t.Context(), t, src, -1) || rec.seen() != 1 {
		t.Errorf("got %d values, want 1", rec.seen())
	}
}

func TestPauseGrowsAndShrinks(t *testing.T) {
	var asked []string
	now := make(chan time.Time, 1)
	p := pace{clock: Clock{After: func(d time.Duration) <-chan time.Time {
		asked = append(asked, d.String())
		now <- time.Time{}
		return now
	}}}
	for _, saw := range []bool{true, false, false, false, false, false, false, true, false} {
		if err := p.wait(t.Context(), saw); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"50ms", "100ms", "200ms", "400ms", "800ms", "1s", "1s", "50ms", "100ms"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

func TestConstructorsRefuseWhatCannotWork(t *testing.T) {
	for name, err := range map[string]error{
		"a file without a path":                  second(NewFile(FileConfig{Parser: lossParser(t)})),
		"a file without a parser":                second(NewFile(FileConfig{Path: "x"})),
		"a stream without a directory":           second(NewStream(StreamConfig{Parser: lossParser(t)})),
		"an event directory without metrics":     second(NewEventDir(EventDirConfig{Dir: "x"})),
		"a push source without a listener":       second(NewPush(PushConfig{})),
		"a stream writer with hardly any room":   second(NewStreamWriter(t.TempDir(), 1)),
		"a stream writer that gets no directory": second(NewStreamWriter("/dev/null/x", 0)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func ExampleFile() {
	dir, _ := os.MkdirTemp("", "")
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "metrics.log")
	_ = os.WriteFile(path, []byte("epoch=1 loss=0.50\n"), 0o644)
	drain := make(chan struct{})
	close(drain) // the program has ended
	parser, _ := parse.NewText([]string{"loss"}, nil)
	src, _ := NewFile(FileConfig{Path: path, Parser: parser, Drain: drain})
	for p, err := range src.Points(context.Background()) {
		fmt.Println(p.Metric, p.Value, p.Text, p.Step, p.Seq, err)
	}
	// Output: loss 0.5 0.50 1 8 <nil>
}
