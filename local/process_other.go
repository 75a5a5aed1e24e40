//go:build !linux

package local

import (
	"errors"
	"syscall"
)

// childAttributes puts a component into a process group of its own, out of reach
// of the terminal's Ctrl-C. Components outlive a supervisor that is killed here:
// there is no parent death signal.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// RunAsInit is for containers, which are Linux.
func RunAsInit() (exitCode int, err error) { return 0, errors.ErrUnsupported }
