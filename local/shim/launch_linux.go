package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// tie makes a child die with the shim.
func tie(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

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
