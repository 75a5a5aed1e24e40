package command

import (
	"os"
	"path/filepath"
	"testing"
)

// Four starts of 90 MB kept 250 MB on the node. What is stored need not be kept.
func TestTheOutputOfStoredStartsIsRemoved(t *testing.T) {
	b := newBench(t)
	sidecar := b.start("--kind=StdOut", "--metric=loss")
	b.until("ready", func() bool { return isReady(b.dir) })
	for n := range 3 {
		if err := b.exec("sh", "-c", "echo loss=1 step=1").Run(); err != nil {
			t.Fatal(err)
		}
		b.untilPoints(n + 1)
	}
	gone := func(n int) bool {
		_, err := os.Stat(filepath.Join(attemptDir(b.dir, n), streamName))
		return os.IsNotExist(err)
	}
	b.until("the output of the first two starts removed", func() bool { return gone(0) && gone(1) })
	if gone(2) {
		t.Error("the newest is needed by a sidecar that starts again")
	}
	sidecar.kill(b)
	sidecar = b.start("--kind=StdOut", "--metric=loss")
	b.until("ready", func() bool { return isReady(b.dir) })
	sidecar.term()
	if series := b.points("loss"); len(series) != 3 {
		t.Errorf("series %+v, want one of each start", series)
	}
	for _, a := range b.attempts() {
		if !a.Final || a.Note != "" {
			t.Errorf("attempt %+v, want that it is final and nothing is said", a)
		}
	}
}
