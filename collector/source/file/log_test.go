package file

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func lossParser(t testing.TB) parse.Line {
	t.Helper()
	p, err := parse.NewText([]string{"loss"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFileReadsEveryWriter(t *testing.T) {
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "metrics.log")
			drain := make(chan struct{})
			src, err := Open(Config{Path: path, Format: "TEXT", Metrics: []string{"loss"}, Drain: drain, Clock: sourcetest.Quick()})
			if err != nil {
				t.Fatal(err)
			}
			rec := sourcetest.NewRecord()
			done := make(chan bool)
			go func() { done <- rec.Follow(t.Context(), t, src, -1) }()
			w := &writer{t: t, path: path, seen: rec.Seen}
			write(w)
			close(drain)
			if !<-done {
				t.Error("the source did not end by itself")
			}
			rec.WantAll(t, w.next)
			if rec.Again != 0 {
				t.Errorf("%d points came twice", rec.Again)
			}
			if diff := cmp.Diff([]string(nil), rec.Errs); diff != "" {
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
			rec := sourcetest.NewRecord()
			random := rand.New(rand.NewPCG(7, uint64(len(name))))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for lives := 0; ; lives++ {
					src, err := Open(Config{
						Path: path, Format: "TEXT", Metrics: []string{"loss"}, Drain: drain, Clock: sourcetest.Quick(), State: filepath.Join(dir, "state"),
					})
					if err != nil {
						t.Error(err)
						return
					}
					limit := -1
					if lives < 30 {
						limit = 1 + random.IntN(100)
					}
					if rec.Follow(t.Context(), t, src, limit) {
						return
					}
				}
			}()
			w := &writer{t: t, path: path, seen: rec.Seen}
			write(w)
			close(drain)
			<-done
			rec.WantAll(t, w.next)
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
	drain := sourcetest.Closed()
	src, err := Open(Config{Path: path, Format: "TEXT", Metrics: []string{"loss"}, Drain: drain})
	if err != nil {
		t.Fatal(err)
	}
	rec := sourcetest.NewRecord()
	rec.Follow(t.Context(), t, src, -1)
	if got := slices.Sorted(maps.Keys(rec.Values)); !slices.Equal(got, []float64{2}) {
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
	src, _ := Open(Config{Path: path, Format: "TEXT", Metrics: []string{"loss"}, Drain: drain})
	for p, err := range src.Points(context.Background()) {
		fmt.Println(p.Metric, p.Value, p.Text, p.Step, p.Seq, err)
	}
	// Output: loss 0.5 0.50 1 8 <nil>
}
