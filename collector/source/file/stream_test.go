package file

import (
	"context"
	"fmt"
	"github.com/vernier-ml/vernier/collector"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"golang.org/x/sys/unix"
)

func newStream(t testing.TB, dir string, drain <-chan struct{}) collector.Source {
	t.Helper()
	s, err := OpenStream(Config{Path: dir, Format: "TEXT", Metrics: []string{"loss"}, Drain: drain, Clock: sourcetest.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newWriter(t testing.TB, dir string, limit int64) *StreamWriter {
	t.Helper()
	w, err := NewStreamWriter(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func say(t testing.TB, w io.Writer, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		t.Fatal(err)
	}
}

// size returns the bytes that a directory holds.
func size(t testing.TB, dir string) (total int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}

// While the reader keeps up, a stream that is far larger than its space loses
// nothing, and Seq is the offset in the whole output.
func TestStreamIsReadAcrossSegments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	drain := make(chan struct{})
	rec := sourcetest.NewRecord()
	done := make(chan bool)
	go func() { done <- rec.Follow(t.Context(), t, newStream(t, dir, drain), -1) }()
	w := newWriter(t, dir, 8<<10)
	lane := w.Lane()
	offsets := map[int64]float64{}
	place := int64(0)
	for i := range 3000 {
		line := fmt.Sprintf("step=%d loss=%d.5\n", i, i)
		offsets[place+int64(strings.Index(line, "loss"))] = float64(i) + 0.5
		place += int64(len(line))
		say(t, lane, "%s", line)
		if i%50 == 0 {
			(&writer{t: t, next: i + 1, seen: rec.Seen}).caughtUp()
		}
	}
	if got := size(t, dir); got > 8<<10 {
		t.Errorf("%d bytes are kept, the limit is %d", got, 8<<10)
	}
	close(drain)
	if !<-done {
		t.Error("the source did not end")
	}
	rec.WantAll(t, 3000)
	for key, p := range rec.Points {
		if offsets[key.Seq] != p.Value {
			t.Fatalf("Seq %d has the value %v, want %v", key.Seq, p.Value, offsets[key.Seq])
		}
	}
	if rec.Errs != nil || w.Dropped() != 0 {
		t.Errorf("errors %q, dropped %d", rec.Errs, w.Dropped())
	}
}

// A reader that comes late misses what there was no room for; it says so, and
// what it has is whole.
func TestStreamReportsWhatWasDropped(t *testing.T) {
	tests := map[string]struct {
		from     int64
		wantErrs int
	}{
		"nothing was stored":             {from: 0, wantErrs: 1},
		"what was dropped was stored":    {from: 1 << 30, wantErrs: 0},
		"some of what was dropped stood": {from: 5, wantErrs: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lane := newWriter(t, dir, 4<<10).Lane()
			for i := range 2000 {
				say(t, lane, "step=%d loss=%d.5\n", i, i)
			}
			src, err := OpenStream(Config{Path: dir, Format: "TEXT", Metrics: []string{"loss"}, From: tc.from, Drain: sourcetest.Closed()})
			if err != nil {
				t.Fatal(err)
			}
			rec := sourcetest.NewRecord()
			rec.Follow(t.Context(), t, src, -1)
			if len(rec.Errs) != tc.wantErrs || tc.wantErrs > 0 && !strings.Contains(rec.Errs[0], "were dropped before they were read") {
				t.Errorf("errors %q", rec.Errs)
			}
			n := len(rec.Values)
			if n < 100 || n > 300 {
				t.Errorf("%d values are kept of 4 KiB", n)
			}
			for i := 2000 - n; i < 2000; i++ {
				if !rec.Values[float64(i)+0.5] {
					t.Errorf("the value %d.5 is missing", i)
				}
			}
		})
	}
}

func TestStreamKilledAndStartedAgain(t *testing.T) {
	dir := t.TempDir()
	drain := make(chan struct{})
	rec := sourcetest.NewRecord()
	random := rand.New(rand.NewPCG(3, 3))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lives := 0; ; lives++ {
			limit := -1
			if lives < 50 {
				limit = 1 + random.IntN(200)
			}
			if rec.Follow(t.Context(), t, newStream(t, dir, drain), limit) {
				return
			}
		}
	}()
	// One writer after another, as when the launcher is started again.
	for begin := 0; begin < 3000; begin += 1000 {
		w := newWriter(t, dir, 1<<20)
		lane := w.Lane()
		for i := begin; i < begin+1000; i++ {
			say(t, lane, "step=%d lo", i)
			say(t, lane, "ss=%d.5\n", i)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(drain)
	<-done
	rec.WantAll(t, 3000)
	if rec.Errs != nil {
		t.Errorf("errors %q", rec.Errs)
	}
}

// Two outputs never tear each other's lines, however they are written.
func TestLanesKeepLinesWhole(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 0)
	var wait sync.WaitGroup
	for n := range 2 {
		wait.Go(func() {
			lane := w.Lane()
			random := rand.New(rand.NewPCG(1, uint64(n)))
			var text strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&text, "step=%d loss=%d.5\n", 2*i+n, 2*i+n)
			}
			for rest := strings.TrimSuffix(text.String(), "\n"); rest != ""; {
				cut := min(len(rest), 1+random.IntN(40))
				if _, err := lane.Write([]byte(rest[:cut])); err != nil {
					t.Error(err)
				}
				rest = rest[cut:]
			}
		})
	}
	wait.Wait()
	sourcetest.Shut(t, w)
	rec := sourcetest.NewRecord()
	rec.Follow(t.Context(), t, newStream(t, dir, sourcetest.Closed()), -1)
	rec.WantAll(t, 2000)
}

// Of each output, the line without an end is known for what it is: a number there
// is torn if the program was killed.
func TestEachOutputMayEndInATornNumber(t *testing.T) {
	for name, tc := range map[string]struct {
		out, errs        string
		killed, restored int // points
	}{
		"both":                       {"loss=1\nloss=2", "loss=3\nloss=4", 2, 4},
		"the first":                  {"loss=1\nloss=2", "loss=3\n", 2, 3},
		"the second":                 {"loss=1\n", "loss=3\rloss=4", 2, 3},
		"neither":                    {"loss=1\n", "loss=3\n", 2, 2},
		"words, and a progress bar":  {"saving", "\r10% loss=0.1", 0, 1},
		"a number that is no metric": {"loss=1 x=3", "", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for well, want := range map[bool]int{true: tc.restored, false: tc.killed} {
				dir := t.TempDir()
				w := newWriter(t, dir, 0)
				out, errs := w.Lane(), w.Lane()
				say(t, out, "%s", tc.out)
				say(t, errs, "%s", tc.errs)
				if err := w.End(well); err != nil {
					t.Fatal(err)
				}
				points := 0
				for _, err := range newStream(t, dir, sourcetest.Closed()).Points(t.Context()) {
					if err == nil {
						points++
					}
				}
				if points != want {
					t.Errorf("ended well %v: %d points, want %d", well, points, want)
				}
			}
		})
	}
}

// Each line that a StreamWriter writes has an end. One without is torn: the disk was
// full, or the writer was killed.
func TestASegmentWithoutAnEndIsTorn(t *testing.T) {
	for name, tc := range map[string]struct {
		segment string
		points  int
		noted   bool
	}{
		"in a number":           {"loss=1\nloss=0.12", 1, true},
		"in the sign of a kill": {"loss=1\nloss=0.12\x00\x00", 1, true},
		"after the number":      {"loss=1\nloss=0.12 epoch", 2, false},
		"whole":                 {"loss=1\nloss=0.12\n", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sourcetest.Put(t, dir, segmentName(0), []byte(tc.segment))
			points, noted := 0, false
			for _, err := range newStream(t, dir, sourcetest.Closed()).Points(t.Context()) {
				if err == nil {
					points++
				} else if strings.Contains(err.Error(), "in the middle of a number") {
					noted = true
				}
			}
			if points != tc.points || noted != tc.noted {
				t.Errorf("%d points, said that a number is torn %v; want %d, %v", points, noted, tc.points, tc.noted)
			}
		})
	}
}

// What a program prints may look as if a line had no end.
func TestZerosBeforeALineFeedAreNoEnd(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 0)
	out := w.Lane()
	for i := range 10 {
		say(t, out, "loss=%d\x00\n", i)
	}
	say(t, out, "\x00\nloss=10\n")
	sourcetest.Shut(t, w)
	src, err := OpenStream(Config{Path: dir, Format: "TEXT", Metrics: []string{"loss"}, Drain: sourcetest.Closed(), Clock: sourcetest.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, sourcetest.Values(t, src)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

// A disk that takes nothing costs output, never the trainer.
func TestStreamWriterNeverFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	w := newWriter(t, dir, 0)
	lane := w.Lane()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	say(t, lane, "loss=0.5\n")
	if got := w.Dropped(); got != 9 {
		t.Errorf("dropped %d bytes, want 9", got)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	say(t, lane, "loss=1.5\n")
	rec := sourcetest.NewRecord()
	rec.Follow(t.Context(), t, newStream(t, dir, sourcetest.Closed()), -1)
	if !rec.Values[1.5] || len(rec.Values) != 1 || len(rec.Errs) != 1 || !strings.Contains(rec.Errs[0], "9 bytes") {
		t.Errorf("values %v, errors %q", rec.Values, rec.Errs)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	say(t, lane, "loss=2.5\n")
	if got := w.Dropped(); got != 18 {
		t.Errorf("dropped %d bytes after Close, want 18", got)
	}
}

func TestStreamWithoutOutputSaysSo(t *testing.T) {
	rec := sourcetest.NewRecord()
	rec.Follow(t.Context(), t, newStream(t, filepath.Join(t.TempDir(), "none"), sourcetest.Closed()), -1)
	if len(rec.Errs) != 1 || !strings.Contains(rec.Errs[0], "printed nothing on standard output or standard error") {
		t.Errorf("errors %q", rec.Errs)
	}
}

// A short program's points are there as soon as it has ended: nothing waits for
// a clock.
func TestStreamDrainNeedsNoClock(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 0)
	say(t, w.Lane(), "step=0 loss=0.5")
	sourcetest.Shut(t, w)
	stopped := source.Clock{After: func(time.Duration) <-chan time.Time { return nil }}
	src, err := OpenStream(Config{Path: dir, Format: "TEXT", Metrics: []string{"loss"}, Drain: sourcetest.Closed(), Clock: stopped})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), sourcetest.Patience)
	defer cancel()
	rec := sourcetest.NewRecord()
	rec.Follow(ctx, t, src, -1)
	if diff := cmp.Diff(1, len(rec.Values)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestAPipeAmongTheOutputIsNotWaitedFor(t *testing.T) {
	dir, drain := t.TempDir(), sourcetest.Closed()
	if err := unix.Mkfifo(filepath.Join(dir, segmentName(0)), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs []error
	for _, err := range newStream(t, dir, drain).Points(t.Context()) {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		t.Error("nothing is said")
	}
}
