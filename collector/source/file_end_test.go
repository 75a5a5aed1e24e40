package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
