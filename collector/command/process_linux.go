package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes make the program end with us.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// smallPages keeps the kernel from giving huge pages where it gives them to all:
// a heap of two megabytes would take four. Where it cannot, memory is all that is
// lost.
func smallPages() error { return unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0) }
