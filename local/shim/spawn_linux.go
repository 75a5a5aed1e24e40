package shim

import (
	"bufio"
	"context"
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

// Spawn returns a client of the shim of o.Dir and starts the shim if none runs.
// The shim leads a session of its own and survives its parent. Runs that an
// earlier shim of the directory recorded stay in the state; those that it left
// running are ReasonLost, and their processes are killed.
func Spawn(ctx context.Context, o Options) (*Client, error) {
	if o.PodUID == "" {
		return nil, errors.New("spawn a shim: the pod's UID is missing")
	}
	c := &Client{dir: o.Dir}
	state, err := c.State(ctx)
	if errors.Is(err, ErrNotRunning) {
		if err := start(ctx, o); err != nil {
			return nil, fmt.Errorf("start the shim of pod %s in %s: %w", o.PodUID, o.Dir, err)
		}
		state, err = c.State(ctx)
	}
	if err != nil {
		return nil, err
	}
	if state.PodUID != o.PodUID {
		return nil, fmt.Errorf("%w: the shim in %s serves pod %s, not %s", ErrConflict, o.Dir, state.PodUID, o.PodUID)
	}
	return c, nil
}

// start runs the shim's binary and waits until it serves. The shim says so by a
// line on descriptor 3; when it dies first, the pipe ends.
func start(ctx context.Context, o Options) error {
	binary, err := o.binary()
	if err != nil {
		return err
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(o.Dir, "shim.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	logged, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	ready, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()

	cmd := exec.Command(binary, serveArgs(o)...)
	cmd.Env, cmd.Dir = o.Env, "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // reaps it if it dies before we do

	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		if ctx.Err() != nil {
			_ = cmd.Process.Kill()
			return ctx.Err()
		}
		text := make([]byte, 4096)
		n, _ := log.ReadAt(text, logged)
		return fmt.Errorf("it ended at once: %s", strings.TrimSpace(string(text[:n])))
	}
	return nil
}

func serveArgs(o Options) []string {
	args := []string{"serve", "--dir", o.Dir, "--pod-uid", o.PodUID, "--ready-fd", "3"}
	if o.Mounts != MountsProbe {
		args = append(args, "--mounts", string(o.Mounts))
	}
	if o.IdleExit != 0 {
		args = append(args, "--idle-exit", o.IdleExit.String())
	}
	return args
}

func (o Options) binary() (string, error) {
	if o.Binary != "" {
		return o.Binary, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), "shim"), nil
}
