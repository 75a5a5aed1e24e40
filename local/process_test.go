package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
)

func TestBackoff(t *testing.T) {
	tests := map[string]struct {
		ran  []time.Duration
		want []time.Duration
	}{
		"it doubles up to five seconds": {
			ran:  make([]time.Duration, 8),
			want: []time.Duration{100e6, 200e6, 400e6, 800e6, 1600e6, 3200e6, 5e9, 5e9},
		},
		"a process that ran for a while starts anew": {
			ran:  []time.Duration{0, 0, 10 * time.Second, 0},
			want: []time.Duration{100e6, 200e6, 100e6, 200e6},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var b backoff
			var got []time.Duration
			for _, ran := range test.ran {
				got = append(got, b.after(ran))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// change is what a keeper told.
type change struct {
	pid int
	err error
}

// keepShell keeps a shell script running; stop ends it and waits.
func keepShell(t *testing.T, script string, grace time.Duration) (changes <-chan change, stop func()) {
	t.Helper()
	told, stopping, ended := make(chan change, 100), make(chan struct{}), make(chan struct{})
	k := &keeper{
		component: component{name: "test", path: "/bin/sh", args: []string{"-c", script}, grace: grace},
		starter:   newStarter(), log: logr.Discard(), stopping: stopping,
		logFile: filepath.Join(t.TempDir(), "test.log"),
		changed: func(pid int, err error) { told <- change{pid, err} },
	}
	go func() {
		defer close(ended)
		k.run(context.Background())
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			close(stopping)
			<-ended
		}
	}
	t.Cleanup(stop)
	return told, stop
}

func next(t *testing.T, changes <-chan change) change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("the keeper says nothing")
		return change{}
	}
}

func TestAComponentThatIsKilledComesBack(t *testing.T) {
	changes, stop := keepShell(t, "exec sleep 1000", time.Second)
	first := next(t, changes)
	if err := syscall.Kill(first.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if ended := next(t, changes); ended.pid != 0 || ended.err == nil {
		t.Errorf("after the kill: %+v, want an end with an error", ended)
	}
	second := next(t, changes)
	if second.pid == 0 || second.pid == first.pid {
		t.Errorf("after the end: %+v, want a new process", second)
	}
	stop()
	if err := syscall.Kill(second.pid, 0); err == nil {
		t.Error("the process runs after stop")
	}
}

func TestAComponentThatIgnoresSIGTERMIsKilledAfterItsGrace(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	changes, stop := keepShell(t, "trap '' TERM; touch "+ready+"; while :; do sleep 0.05; done", 100*time.Millisecond)
	started := next(t, changes)
	eventually(t, "the script runs", func() bool { return sizeOf(ready) == 0 })
	stop()
	if err := syscall.Kill(started.pid, 0); err == nil {
		t.Error("the process runs after stop")
	}
}

func TestOutputGoesToTheLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "test.log")
	k := &keeper{
		component: component{path: "/bin/sh", args: []string{"-c", "echo out; echo err >&2; exit 3"}},
		starter:   newStarter(), log: logr.Discard(), logFile: log, stopping: make(chan struct{}),
		changed: func(int, error) {},
	}
	err := k.runOnce(t.Context())
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want exit status 3", err)
	}
	if got := read(t, log); got != "out\nerr\n" {
		t.Errorf("the log holds %q", got)
	}
	if got := tailOf(log); got != "out\nerr\n" {
		t.Errorf("tailOf gives %q", got)
	}
}

func TestALargeLogIsMovedAside(t *testing.T) {
	log := filepath.Join(t.TempDir(), "test.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(log, maxLog); err != nil {
		t.Fatal(err)
	}
	if err := rotate(log); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(log + ".1"); err != nil {
		t.Error(err)
	}
	if err := rotate(log); err != nil {
		t.Errorf("an absent log: %v", err)
	}
}

// A disk that is full lets no log be copied aside. The component starts all the same,
// and what was copied takes no room.
func TestAComponentStartsThoughItsLogCannotBeCopiedAside(t *testing.T) {
	log := filepath.Join(t.TempDir(), "test.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(log, maxLog); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", log+".1"); err != nil {
		t.Fatal(err)
	}
	pid := 0
	k := &keeper{
		component: component{name: "test", path: "/bin/true"}, starter: newStarter(), log: logr.Discard(), logFile: log,
		changed: func(p int, _ error) { pid = p },
	}
	if err := k.runOnce(t.Context()); err != nil || pid == 0 {
		t.Errorf("process %d: %v", pid, err)
	}
	if fileExists(log + ".1") {
		t.Error("a part of the log was left behind")
	}
	if info, err := os.Stat(log); err != nil || info.Size() < maxLog {
		t.Errorf("the log was emptied though it was not copied: %v, %v", info, err)
	}
}
