package shim

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTimeout bounds the wait for processes that do not end although they were
// killed, because they sit in the kernel.
const sweepTimeout = 5 * time.Second

// tree finds the processes of one run: its session, the orphans that carry its
// mark, and the descendants of both.
type tree struct {
	reaper *reaper
	main   int
	mark   string // "VERNIER_CONTAINER=name/run"
	// sole says that orphans without any mark are this run's, because no other
	// runs. nil means never.
	sole func() bool
}

func (t tree) members() (map[int]process, error) {
	table, err := processes()
	if err != nil {
		return nil, err
	}
	mains, self, sole := t.reaper.mains(), os.Getpid(), t.sole != nil && t.sole()
	return family(table, map[int]bool{self: true}, func(p process) bool {
		if p.parent == self && !mains[p.pid] && !mains[p.session] {
			return p.session == t.main || sole || hasEnv(p.pid, t.mark)
		}
		return p.pid == t.main || p.session == t.main
	}), nil
}

// kill sends SIGKILL to every process of the run that exists now.
func (t tree) kill() (int, error) {
	members, err := t.members()
	if err != nil {
		return 0, err
	}
	return len(members), killAll(members)
}

func killAll(members map[int]process) error {
	for pid := range members {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}

// sweep kills what the main process left behind, until nothing is left. Killing a
// process hands us its children, so one round is not enough.
func (t tree) sweep() error {
	if childless() {
		return nil
	}
	deadline := time.NewTimer(sweepTimeout)
	defer deadline.Stop()
	for {
		activity := t.reaper.activity()
		n, err := t.kill()
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-activity:
		case <-time.After(20 * time.Millisecond): // one whose parent is not us yet
		case <-deadline.C:
			return fmt.Errorf("%d processes do not end although they were killed", n)
		}
	}
}

// childless says without reading the process table that there is nothing to sweep.
func childless() bool {
	err := unix.EINTR
	for err == unix.EINTR {
		var info unix.Siginfo
		e := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		err, _ = e.(syscall.Errno) //nolint:errorlint // a system call gives nothing else
	}
	return err == unix.ECHILD
}
