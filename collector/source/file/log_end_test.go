package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

func TestFileEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan struct{})
	var once sync.Once
	never := source.Clock{After: func(time.Duration) <-chan time.Time {
		once.Do(func() { close(waiting) })
		return nil
	}}
	src, err := Open(Config{Path: filepath.Join(t.TempDir(), "none"), Format: "TEXT", Metrics: []string{"loss"}, Clock: never})
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
	clock := source.Clock{After: func(time.Duration) <-chan time.Time {
		once.Do(func() {
			if err := os.WriteFile(path, []byte("loss=1"), 0o644); err != nil {
				t.Error(err)
			}
			close(drain)
		})
		return nil
	}}
	src, err := Open(Config{Path: path, Format: "TEXT", Metrics: []string{"loss"}, Drain: drain, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	rec := sourcetest.NewRecord()
	if !rec.Follow(t.Context(), t, src, -1) || rec.Seen() != 1 {
		t.Errorf("got %d values, want 1", rec.Seen())
	}
}
