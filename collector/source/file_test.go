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

// collected reads a source to its end.
func collected(t testing.TB, src collector.Source) (points []collector.Point, errs []string) {
	t.Helper()
	for p, err := range src.Points(t.Context()) {
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		points = append(points, p)
	}
	return points, errs
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

// A value that stands where a long line is cut must not be read in half.
func TestFileDoesNotTearANumberAtTheCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	text := strings.Repeat("x", maxLine-len(" loss=1")) + " loss=123456\nloss=2\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	drain := isClosed()
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
