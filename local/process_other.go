//go:build !linux

package local

import "syscall"

// childAttributes puts a component into a process group of its own, out of reach
// of the terminal's Ctrl-C. Components outlive a supervisor that is killed here:
// there is no parent death signal.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// detached is for the supervisor itself: a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
