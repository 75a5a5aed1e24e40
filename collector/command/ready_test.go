package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// up is a sidecar that is ready, until the test ends or the file is closed.
func up(t *testing.T, dir string) *os.File {
	held, err := sayReady(dir)
	if err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	return held
}

func TestASidecarIsWaitedFor(t *testing.T) {
	const never = time.Hour
	tests := map[string]struct {
		up   time.Duration // the sidecar comes up after
		wait time.Duration
		gets os.Signal // after a second
		want bool
		took time.Duration

		killed bool // it was up before
	}{
		"it is up":                            {up: 0, wait: lateWait, want: true},
		"it comes late":                       {up: lateWait - readyPoll, wait: lateWait, want: true, took: lateWait - readyPoll},
		"it does not come":                    {up: never, wait: lateWait, took: lateWait + readyPoll},
		"a startup probe ends sooner":         {up: lateWait, wait: readyWait, took: readyWait + readyPoll},
		"it is told to end":                   {up: never, wait: lateWait, gets: unix.SIGTERM, took: time.Second},
		"it is told something else":           {up: 2 * time.Second, wait: lateWait, gets: unix.SIGUSR1, want: true, took: 2 * time.Second},
		"it was killed, and is started again": {killed: true, up: 10 * time.Second, wait: lateWait, want: true, took: 10 * time.Second},
		"it was killed for good":              {killed: true, up: never, wait: lateWait, took: lateWait + readyPoll},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, begin := t.TempDir(), time.Now()
				if tc.killed {
					must(t, up(t, dir).Close())
				}
				if tc.up == 0 {
					up(t, dir)
				} else {
					defer time.AfterFunc(tc.up-1, func() { up(t, dir) }).Stop() // just before it is looked for
				}
				signals := make(chan os.Signal, 1)
				if tc.gets != nil {
					time.AfterFunc(time.Second, func() { signals <- tc.gets })
				}
				if got, took := awaitReady(dir, tc.wait, signals), time.Since(begin); got != tc.want || took != tc.took {
					t.Errorf("ready %v after %s, want %v after %s", got, took, tc.want, tc.took)
				}
			})
		})
	}
}

// A program that was told to end, as its pod is, has little time.
func TestTheSidecarOfAProgramThatWasToldToEndIsWaitedForLess(t *testing.T) {
	for told, want := range map[bool]time.Duration{false: lateWait + readyPoll, true: readyWait + readyPoll} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			e, begin := execution{dir: t.TempDir(), stderr: &said, toldToEnd: told}, time.Now()
			e.awaitSidecar()
			if took := time.Since(begin); took != want || !strings.Contains(said.String(), "is not up") {
				t.Errorf("told %v: it took %s, want %s; it said %q", told, took, want, said.String())
			}
		})
	}
}

// The program's end is what counts, also for who ends the wait for its sidecar.
func TestASignalInTheWaitForTheSidecarLeavesTheExitCode(t *testing.T) {
	dir := t.TempDir()
	cmd := execIn(t, dir, "sh", "-c", "exit 3")
	var said bytes.Buffer
	cmd.Stderr = &said
	must(t, cmd.Start())
	until(t, "ended", func() bool {
		lock, err := os.Open(filepath.Join(attemptDir(dir, 0), lockName))
		if err != nil {
			return false
		}
		defer lock.Close()
		return unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
	})
	must(t, cmd.Process.Signal(unix.SIGTERM))
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(said.String(), "is not up") {
		t.Errorf("%v, code %d, want 3; it said %q", err, code, said.String())
	}
}
