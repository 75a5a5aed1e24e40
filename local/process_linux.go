package local

import "syscall"

// childAttributes puts a component into a process group of its own, out of reach
// of the terminal's Ctrl-C, and ties its life to the supervisor's.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// detached is for the supervisor itself: a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
