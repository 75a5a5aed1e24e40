package command

import (
	"os"
	"path/filepath"
	"testing"
)

// Katib's SDK shows the log of the sidecar as that of the program.
func TestTheLogOfTheSidecarHasTheProgramsLines(t *testing.T) {
	t.Run("StdOut", func(t *testing.T) {
		b := newBench(t)
		sidecar := b.start("--kind=StdOut", "--metric=loss")
		b.until("ready", func() bool { return isReady(b.dir) })
		if err := b.exec("sh", "-c", "echo downloading; echo loss=1; printf 'the end'").Run(); err != nil {
			t.Fatal(err)
		}
		b.untilPoints(1)
		sidecar.term()
		want(t, "log", "downloading\nloss=1\nthe end\n", sidecar.log.String())
	})
	t.Run("File", func(t *testing.T) {
		b := newBench(t)
		path := filepath.Join(b.dir, "metrics.log")
		sidecar := b.start("--kind=File", "--metric=loss", "--path="+path)
		b.until("ready", func() bool { return isReady(b.dir) })
		if err := os.WriteFile(path, []byte("step 1\nloss=1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.untilPoints(1)
		sidecar.term()
		want(t, "log", "step 1\nloss=1\n", sidecar.log.String())
	})
}
