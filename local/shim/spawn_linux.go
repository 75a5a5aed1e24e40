package shim

import (
	"bufio"
	"bytes"
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
	c, state, err := Attach(ctx, o.Dir)
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

// start runs the shim's binary and waits until it serves.
func start(ctx context.Context, o Options) (err error) {
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	attr := &syscall.SysProcAttr{Setsid: true}
	if o.Tied {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return Launch(ctx, o.Binary, o.Dir, serveArgs(o), attr)
}

// Launch starts a program that serves a directory, which is made, and waits until
// it serves. The program says so by a line on descriptor 3; when it dies first, the
// pipe ends. It logs to the file shim.log there.
func Launch(ctx context.Context, binary, dir string, args []string, attr *syscall.SysProcAttr) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "shim.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
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

	cmd := exec.Command(binary, args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = attr
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
	args := []string{"serve", "--dir", o.Dir, "--pod-uid", o.PodUID, "--mounts", string(o.Mounts), "--ready-fd", "3"}
	if o.IdleExit != 0 {
		args = append(args, "--idle-exit", o.IdleExit.String())
	}
	return args
}

const stagingName = "root"

// ProbeMounts finds out how mounts can be made on this machine by making some in
// a process that ends at once. With MountsNone comes the reason why nothing
// better works; ask once and hand the mode to each Spawn. binary is the shim's.
// The probe makes a directory below dir, which must be writable.
func ProbeMounts(ctx context.Context, binary, dir string) (MountMode, error) {
	var refusals []error
	if os.Geteuid() == 0 {
		err := probe(ctx, binary, dir, MountsRoot)
		if err == nil {
			return MountsRoot, nil
		}
		refusals = append(refusals, fmt.Errorf("as root: %w", err))
	}
	err := probe(ctx, binary, dir, MountsUser)
	if err == nil {
		return MountsUser, nil
	}
	refusals = append(refusals, fmt.Errorf("in a user namespace: %w", err))
	if errors.Is(ctx.Err(), context.Canceled) {
		return MountsNone, ctx.Err()
	}
	return MountsNone, fmt.Errorf("mount namespaces do not work here: %w", errors.Join(refusals...))
}

// probe mounts a file at the default path of termination messages, in a new root,
// so it needs all that a container may need.
func probe(ctx context.Context, binary, parent string, mode MountMode) error {
	dir, err := os.MkdirTemp(parent, "shim-probe-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	message := filepath.Join(dir, "message")
	if err := touch(message); err != nil {
		return err
	}
	e := entry{
		Argv: []string{filepath.Join("/vernier-probe", filepath.Base(binary)), "version"},
		Dir:  "/", Staging: dir, User: mode == MountsUser,
		Mounts: []Mount{
			{HostPath: message, MountPath: DefaultTerminationPath, File: true},
			{HostPath: filepath.Dir(binary), MountPath: "/vernier-probe", ReadOnly: true},
		},
	}
	f, err := e.file()
	if err != nil {
		return err
	}
	defer f.Close()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, "enter")
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{f}, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	namespaces(cmd.SysProcAttr, mode)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w %s%s", err, strings.TrimSpace(out.String()), hint(mode))
	}
	return nil
}

// hint names the setting that most often forbids user namespaces.
func hint(mode MountMode) string {
	if mode != MountsUser {
		return ""
	}
	for _, setting := range []struct{ path, forbids string }{
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0"},
		{"/proc/sys/user/max_user_namespaces", "0"},
	} {
		data, err := os.ReadFile(setting.path)
		if err == nil && strings.TrimSpace(string(data)) == setting.forbids {
			return fmt.Sprintf(" (%s is %s)", setting.path, setting.forbids)
		}
	}
	return ""
}
