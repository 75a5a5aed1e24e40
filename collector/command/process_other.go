//go:build unix && !linux

package command

import "syscall"

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func smallPages() error { return nil }
