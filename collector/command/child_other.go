//go:build unix && !linux

package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func maxRSS(u unix.Rusage) int64 { return u.Maxrss }
