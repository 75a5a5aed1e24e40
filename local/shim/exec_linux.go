package shim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Exec runs argv inside a running container: in its file system and network, with
// its environment, working directory and user, in a session of its own. streams are
// its standard input, output and error; with tty they are a terminal. It returns
// the exit code: 128 and the signal's number when a signal ended it, 127 (not found)
// or 126 when the program could not be started, which standard error explains. When
// ctx or the container ends, its process group is killed.
func (c *Client) Exec(ctx context.Context, name string, run int, argv []string, streams [3]*os.File, tty bool) (int, error) {
	r, _, err := c.exchange(ctx, request{Op: opExec, Name: name, Run: run, Argv: argv, TTY: tty}, streams[:]...)
	return r.ExitCode, err
}

// Dial connects to a TCP address as a program of the pod would.
func (c *Client) Dial(ctx context.Context, address string) (net.Conn, error) {
	_, files, err := c.exchange(ctx, request{Op: opDial, Address: address})
	defer closeAll(files)
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("connect to %s: the shim in %s answered with no connection", address, c.dir)
	}
	if err != nil {
		return nil, err
	}
	return net.FileConn(files[0])
}

// exec answers opExec; the client is gone when ctx is done.
func (s *Supervisor) exec(ctx context.Context, key runKey, argv []string, streams []*os.File, tty bool) (int, error) {
	if len(argv) == 0 || len(streams) != 3 {
		return 0, fmt.Errorf("run a command in container %s: it needs a command and three streams", key)
	}
	c := s.container(key)
	if c == nil {
		return 0, fmt.Errorf("run a command in container %s: %w", key, ErrUnknownRun)
	}
	<-c.started
	if isClosed(c.ended) {
		return 0, fmt.Errorf("run a command in container %s: it is not running", key)
	}
	pid, exit, err := s.forkBeside(c, argv, streams, tty)
	if err != nil {
		return 0, fmt.Errorf("run a command in container %s: %w", key, err)
	}
	closeAll(streams)
	select {
	case status := <-exit:
		return status.code, nil
	case <-ctx.Done():
	case <-c.ended:
	}
	s.reaper.killGroup(pid)
	return (<-exit).code, ctx.Err()
}

// forkBeside starts `shim enter` in the root of a container's main process.
func (s *Supervisor) forkBeside(c *container, argv []string, streams []*os.File, tty bool) (pid int, exit <-chan exitStatus, err error) {
	spec := c.spec
	spec.Argv = argv
	spec = spec.prepared(s.podUID, s.mounts)
	e, err := entryOf(spec, s.mounts)
	if err != nil {
		return 0, nil, err
	}
	e.Mounts, e.Join = nil, s.mounts != MountsNone
	f, err := e.file()
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	attr := &syscall.ProcAttr{
		Env:   slices.DeleteFunc(slices.Clone(spec.Env), func(v string) bool { return !strings.HasPrefix(v, EnvPodUID+"=") }),
		Files: []uintptr{streams[0].Fd(), streams[1].Fd(), streams[2].Fd(), f.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: tty, Pdeathsig: syscall.SIGKILL},
	}
	namespaces(attr.Sys, s.mounts)
	if e.Join {
		root, err := os.OpenFile(fmt.Sprintf("/proc/%d/root", c.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, nil, err
		}
		defer root.Close()
		attr.Files = append(attr.Files, root.Fd())
	}
	if !s.reaper.mains()[c.pid] { // the root may be another process's by now
		return 0, nil, errors.New("it has ended")
	}
	return s.reaper.fork("/proc/self/exe", []string{"shim", "enter"}, attr)
}

// dialTimeout bounds a connection that a client asks for.
const dialTimeout = 10 * time.Second

// dial answers opDial.
func (s *Supervisor) dial(ctx context.Context, address string) (*os.File, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*net.TCPConn).File()
}

// exchange sends a request with open files and returns the answer with the files
// that came along; these are the caller's to close.
func (c *Client) exchange(ctx context.Context, q request, files ...*os.File) (r response, received []*os.File, err error) {
	conn, err := DialIn(ctx, c.dir)
	if err != nil {
		if ctx.Err() != nil {
			return r, nil, ctx.Err()
		}
		return r, nil, fmt.Errorf("%w in %s: %w", ErrNotRunning, c.dir, err)
	}
	peer := &fileConn{UnixConn: conn.(*net.UnixConn)}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	q.Version = Version
	if err = peer.send(q, files); err == nil {
		err = json.NewDecoder(peer).Decode(&r)
	}
	if err != nil {
		closeAll(peer.files)
		return r, nil, c.lost(ctx, err)
	}
	return r, peer.files, r.err()
}

// fileConn keeps the open files that come with what is read.
type fileConn struct {
	*net.UnixConn
	files []*os.File
}

// maxFiles is how many open files come with one message at most.
const maxFiles = 3

func (c *fileConn) Read(p []byte) (int, error) {
	rights := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, m, _, _, err := c.ReadMsgUnix(p, rights)
	if err != nil || m == 0 {
		return max(n, 0), err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return n, err
	}
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return n, err
		}
		for _, fd := range descriptors {
			c.files = append(c.files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return n, nil
}

// send writes one line of JSON together with open files.
func (c *fileConn) send(message any, files []*os.File) error {
	var line bytes.Buffer
	if err := json.NewEncoder(&line).Encode(message); err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		var descriptors []int
		for _, f := range files {
			descriptors = append(descriptors, int(f.Fd()))
		}
		rights = unix.UnixRights(descriptors...)
	}
	n, _, err := c.WriteMsgUnix(line.Bytes(), rights, nil)
	if err == nil && n < line.Len() {
		_, err = c.Write(line.Bytes()[n:])
	}
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
