package local

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// childAttributes puts a component into a process group of its own, out of reach
// of the terminal's Ctrl-C, and ties its life to the supervisor's.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// RunAsInit runs this program again as a child, for a process that is the first of
// a container: it reaps the processes that trials leave behind, hands SIGTERM and
// SIGINT on, and returns the child's exit code.
func RunAsInit() (exitCode int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	child, err := os.StartProcess(self, os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true}, // Ctrl-C reaches it through us alone
	})
	if err != nil {
		return 0, fmt.Errorf("run as a child of process 1: %w", err)
	}
	go func() {
		for s := range signals {
			_ = child.Signal(s) // it may have ended
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for children: %w", err)
		case pid == child.Pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case pid == child.Pid && status.Exited():
			return status.ExitStatus(), nil
		}
	}
}
