package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// launch starts the program of c. An error means that it never ran.
func (s *Supervisor) launch(c *container) (err error) {
	if c.log, err = openLog(c.spec, s.now); err != nil {
		return err
	}
	if err := emptyMessage(c.spec.TerminationPath); err != nil {
		return err
	}
	child, err := c.open()
	defer child.close()
	if err != nil {
		return err
	}
	c.began = s.now()
	if err := s.fork(c, child); err != nil {
		return err
	}
	c.copyOutput()
	return nil
}

func attributes(c *container, child *stdio) *syscall.ProcAttr {
	attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true, Setctty: c.spec.TTY}}
	attr.Sys.Pdeathsig = syscall.SIGKILL // it dies with the shim
	for _, f := range child.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	return attr
}

func toExit(status syscall.WaitStatus, at time.Time) exitStatus {
	if status.Signaled() {
		return exitStatus{code: 128 + int(status.Signal()), signal: int(status.Signal()), at: at}
	}
	return exitStatus{code: status.ExitStatus(), at: at}
}

// fork starts `shim enter`, in namespaces of its own where there can be, and waits
// until it has become the program.
func (s *Supervisor) fork(c *container, child *stdio) error {
	e, err := entryOf(c.spec.prepared(s.podUID, s.mounts), s.mounts)
	if err != nil {
		return err
	}
	e.Staging, e.Parent = filepath.Join(s.dir, stagingName), os.Getpid()
	c.standIns = strings.Join(makeMountPoints(e.Mounts), ", ")
	f, err := e.file()
	if err != nil {
		return err
	}
	defer f.Close()
	report, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()

	attr := attributes(c, child)
	attr.Files = append(attr.Files, f.Fd(), w.Fd())
	attr.Env = []string{EnvPodUID + "=" + s.podUID, c.mark()}
	namespaces(attr.Sys, s.mounts)
	pid, exit, err := s.reaper.fork("/proc/self/exe", []string{"shim", "enter"}, attr)
	w.Close()
	if err != nil {
		return fmt.Errorf("start a process: %w", err)
	}
	text, err := io.ReadAll(report)
	if err == nil && len(text) > 0 {
		err = errors.New(string(text))
	}
	if err != nil {
		<-exit
		return err
	}
	c.pid, c.exit = pid, exit
	return nil
}
