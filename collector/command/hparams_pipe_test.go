package command

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAPipeInPlaceOfTheHparamsFileHoldsNothingUp(t *testing.T) {
	b := newBench(t)
	dir := filepath.Join(b.dir, "events")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, unix.Mkfifo(filepath.Join(dir, "events.out.tfevents.0000000000.vernier.t"), 0o666))
	s := b.run("--kind=TensorFlowEvent", "--path="+dir, "--metric=loss", "--trial=t", "--parameter=lr=1", "--grace=2s")
	ended := make(chan error, 1)
	must(t, s.cmd.Process.Signal(unix.SIGTERM))
	go func() { ended <- s.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("10 s after SIGTERM, with 2 s of grace, it runs on")
		_ = s.cmd.Process.Kill()
		<-ended
	}
}
