package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	if err := s.launchAny(c, c.spec.prepared(s.podUID, s.mounts), child); err != nil {
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

// direct prepares a program that needs no mounts.
func direct(spec ContainerSpec) (*exec.Cmd, error) {
	who, err := identityOf(spec)
	if err != nil {
		return nil, err
	}
	if err := checkDir(spec.Dir); err != nil {
		return nil, err
	}
	path, err := findProgram(spec.Argv[0], spec.Env, spec.Dir)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path:        path,
		Args:        spec.Argv,
		Env:         spec.Env,
		Dir:         spec.Dir,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Credential: who.credential()},
	}, nil
}

func (s *Supervisor) launchDirect(c *container, spec ContainerSpec, child *stdio) error {
	cmd, err := direct(spec)
	if err != nil {
		return err
	}
	attr := attributes(c, child)
	attr.Dir, attr.Env, attr.Sys.Credential = cmd.Dir, cmd.Env, cmd.SysProcAttr.Credential
	c.pid, c.exit, err = s.reaper.fork(cmd.Path, cmd.Args, attr)
	if err != nil {
		return explainExec(cmd.Path, err)
	}
	return nil
}

func toExit(status syscall.WaitStatus, at time.Time) exitStatus {
	if status.Signaled() {
		return exitStatus{code: 128 + int(status.Signal()), signal: int(status.Signal()), at: at}
	}
	return exitStatus{code: status.ExitStatus(), at: at}
}

func (s *Supervisor) launchAny(c *container, spec ContainerSpec, child *stdio) error {
	if s.mounts == MountsNone || len(spec.allMounts()) == 0 {
		return s.launchDirect(c, spec, child)
	}
	return s.launchMounted(c, spec, child)
}

// launchMounted starts `shim enter` in namespaces of its own and waits until it
// has become the program.
func (s *Supervisor) launchMounted(c *container, spec ContainerSpec, child *stdio) error {
	e, err := entryOf(spec, s.mounts)
	if err != nil {
		return err
	}
	e.Mounts, e.Staging = spec.allMounts(), filepath.Join(s.dir, stagingName)
	c.standIns = strings.Join(makeMountPoints(e.Mounts), ", ")
	e.Parent = os.Getpid()
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
		return fmt.Errorf("make a mount namespace: %w", err)
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
