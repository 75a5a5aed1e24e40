package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A collector that cannot measure must say so, and not be ready.
func TestASidecarThatCannotListenIsNotReady(t *testing.T) {
	b := newBench(t)
	must(t, os.Mkdir(filepath.Join(b.dir, "push.journal"), 0o755)) // cannot be opened
	s := b.start("--kind=Push", "--metric=loss", "--grace=2s")
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	b.until("at its end", func() bool {
		select {
		case err := <-ended:
			t.Logf("it ended with %v: %s", err, s.said.String())
			return true
		default:
			return isReady(b.dir)
		}
	})
	if isReady(b.dir) {
		t.Fatal("it is ready")
	}
	if strings.TrimSpace(s.said.String()) == "" {
		t.Error("it says nothing")
	}
}
