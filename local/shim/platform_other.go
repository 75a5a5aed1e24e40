//go:build !linux

package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const stagingName = "root"

// platformLimits says what does not work on this system.
func platformLimits() []string {
	return []string{
		"memory limits are not enforced",
		"processes that leave their container's process group are not killed with it",
	}
}

func sealDescriptors() error { return nil }

func bootID() string        { return "" }
func startTicks(int) uint64 { return 0 }

// ProbeMounts says that this system has no mount namespaces.
func ProbeMounts(context.Context, string) (MountMode, error) {
	return MountsNone, fmt.Errorf("mount namespaces need Linux: %w", errors.ErrUnsupported)
}

// KillLeftovers is not possible here: a process's environment cannot be read.
func KillLeftovers(context.Context, string) (int, error) {
	return 0, fmt.Errorf("kill leftovers: %w", errors.ErrUnsupported)
}

// Enter is never called here.
func Enter() int { return ExitCodeStartError }

func command(spec ContainerSpec, _ MountMode, _, _ int) (*exec.Cmd, error) {
	return direct(spec)
}

func (s *Supervisor) launchAny(c *container, spec ContainerSpec, child *stdio) error {
	return s.launchDirect(c, spec, child)
}

func tie(*syscall.SysProcAttr) {}

// exitStatus is how a child ended.
type exitStatus struct {
	code, signal int
	at           time.Time
}

// reaper forks the main processes and waits for them.
type reaper struct {
	now   func() time.Time
	mu    sync.Mutex
	lives map[int]bool
}

func newReaper(now func() time.Time) (*reaper, error) {
	return &reaper{now: now, lives: make(map[int]bool)}, nil
}

func (r *reaper) fork(path string, argv []string, attr *syscall.ProcAttr) (int, <-chan exitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	r.lives[pid] = true
	p, err := os.FindProcess(pid)
	if err != nil {
		return 0, nil, err
	}
	exit := make(chan exitStatus, 1)
	go func() {
		state, err := p.Wait()
		r.mu.Lock()
		delete(r.lives, pid)
		r.mu.Unlock()
		if err != nil {
			exit <- exitStatus{code: 128 + int(syscall.SIGKILL), signal: int(syscall.SIGKILL), at: r.now()}
			return
		}
		exit <- toExit(state.Sys().(syscall.WaitStatus), r.now())
	}()
	return pid, exit, nil
}

func (r *reaper) signal(pid int, sig syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := syscall.Kill(pid, sig); r.lives[pid] && err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}

// tree is what of a run can be found: its process group.
type tree struct {
	reaper *reaper
	main   int
	mark   string
	sole   func() bool
}

func (t tree) kill() (int, error) {
	if err := syscall.Kill(-t.main, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return 0, err
	}
	return 1, nil
}

func (t tree) sweep() error {
	_, err := t.kill()
	return err
}

// watchMemory cannot see other processes' memory here.
func watchMemory(_ tree, _ int64, done <-chan struct{}, _ func(string)) { <-done }
