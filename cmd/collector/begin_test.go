package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A collector that cannot measure must say so, and not be ready.
func TestASidecarThatCannotListenIsNotReady(t *testing.T) {
	b := newBench(t)
	must(t, os.Mkdir(filepath.Join(b.dir, "push.journal"), 0o755)) // cannot be opened
	s := b.start("--kind=Push", "--metric=loss", "--grace=2s")
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended:
		t.Logf("it ended with %v: %s", err, s.said.String())
	case <-time.After(3 * time.Second):
		_, err := os.Stat(filepath.Join(b.dir, readyName))
		t.Errorf("it runs on; ready: %v; it said %q", err == nil, s.said.String())
		_ = s.cmd.Process.Kill()
		<-ended
	}
	if strings.TrimSpace(s.said.String()) == "" {
		t.Error("it says nothing")
	}
}
