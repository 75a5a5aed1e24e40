// Package osspecific stands in for a file that the Go module of Argo Workflows does not
// have: how argoexec starts, signals and waits for a step's program on Linux.
package osspecific

import (
	"os"
	"syscall"

	"github.com/argoproj/argo-workflows/v3/util/errors"
)

// Term ends a step.
const Term = syscall.SIGTERM

// CanIgnoreSignal says which signals a step need not get.
func CanIgnoreSignal(s os.Signal) bool { return s == syscall.SIGCHLD || s == syscall.SIGURG }

// Kill signals the process group of a step.
func Kill(pid int, s syscall.Signal) error {
	if group, err := syscall.Getpgid(pid); err == nil {
		pid = -group
	}
	return syscall.Kill(pid, s)
}

// Setpgid gives a step a process group.
func Setpgid(a *syscall.SysProcAttr) { a.Setpgid = true }

// Wait returns how a step's program ended.
func Wait(process *os.Process) error {
	state, err := process.Wait()
	if err != nil {
		return err
	}
	code := state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return errors.NewExitErr(code)
}
