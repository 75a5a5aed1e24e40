package shim

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exitStatus is how a child ended.
type exitStatus struct {
	code, signal int
	at           time.Time
}

// reaper forks the main processes and waits for every child, orphans that the
// kernel hands to us included.
type reaper struct {
	now   func() time.Time
	forks chan func()

	// mu is held while forking and while reaping, so that no child is reaped
	// before it is known and no pid is used after it was given back.
	mu     sync.Mutex
	exits  map[int]chan exitStatus
	reaped chan struct{} // closed and replaced when a child was reaped
}

func newReaper(now func() time.Time) (*reaper, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	r := &reaper{now: now, forks: make(chan func()), exits: make(map[int]chan exitStatus), reaped: make(chan struct{})}
	go func() {
		// Children are killed when the thread that made them ends (PDEATHSIG), so
		// it must be one that lives as long as the shim.
		runtime.LockOSThread()
		for f := range r.forks {
			f()
		}
	}()
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			r.reap()
		}
	}()
	return r, nil
}

// fork starts a child and returns a channel that yields how it ended.
func (r *reaper) fork(path string, argv []string, attr *syscall.ProcAttr) (pid int, exit <-chan exitStatus, err error) {
	done := make(chan struct{})
	r.forks <- func() {
		defer close(done)
		r.mu.Lock()
		defer r.mu.Unlock()
		if pid, err = syscall.ForkExec(path, argv, attr); err == nil {
			ch := make(chan exitStatus, 1)
			r.exits[pid], exit = ch, ch
		}
	}
	<-done
	return pid, exit, err
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	some := false
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			break
		}
		some = true
		if ch, ours := r.exits[pid]; ours {
			delete(r.exits, pid)
			ch <- toExit(status, r.now())
		}
	}
	if some {
		close(r.reaped)
		r.reaped = make(chan struct{})
	}
}

// signal signals a main process that was not reaped yet.
func (r *reaper) signal(pid int, sig syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, lives := r.exits[pid]; !lives {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

// activity returns a channel that is closed when the next child was reaped.
func (r *reaper) activity() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reaped
}

// mains are the main processes that live.
func (r *reaper) mains() map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pids := make(map[int]bool, len(r.exits))
	for pid := range r.exits {
		pids[pid] = true
	}
	return pids
}
