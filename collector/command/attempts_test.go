package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The program may put anything in the place of what "collector exec" writes. The
// sidecar neither waits for it nor reads it all, and ends when it is told to.
func TestAnythingMayStandInPlaceOfAStart(t *testing.T) {
	tests := map[string]func(path string) error{
		"a pipe without a writer": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a device without an end": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a directory":             func(path string) error { return os.Mkdir(path, 0o700) },
		"a file of a gigabyte": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, gigabyte))
		},
	}
	for name, place := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			dir := attemptDir(b.dir, 0)
			must(t, os.MkdirAll(dir, 0o755))
			must(t, place(filepath.Join(dir, startName)))
			s := b.run("--kind=StdOut", "--metric=loss")
			// One that hangs is told from one that ends by how it ends.
			defer time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() }).Stop()
			must(t, s.cmd.Process.Signal(unix.SIGTERM))
			_ = s.cmd.Wait() // an error, for the exit code
			if got := s.cmd.ProcessState.ExitCode(); got != exitFailed || !strings.Contains(s.said.String(), "read attempt 0") {
				t.Errorf("%v, and said:\n%s", s.cmd.ProcessState, s.said.String())
			}
		})
	}
}

// The node's clock is set back between two starts of a program: the later start
// still is the newest attempt.
func TestALaterAttemptStartsLaterWhateverTheClockSays(t *testing.T) {
	dir := t.TempDir()
	var before time.Time
	for n, seconds := range []int64{100, 40, 40, 200, 10} {
		attempt, lock, err := newAttempt(dir, start{time.Unix(seconds, 0).UTC()})
		must(t, err)
		must(t, lock.Close())
		var s start
		must(t, readJSON(filepath.Join(attempt, startName), &s))
		if !s.Started.After(before) {
			t.Errorf("attempt %d started at %v, the one before at %v", n, s.Started, before)
		}
		before = s.Started
	}
}
