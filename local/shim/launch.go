package shim

import (
	"os/exec"
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
	tie(attr.Sys)
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
