package shim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultIdleExit = 10 * time.Minute
	shutdownTimeout = 10 * time.Second
	// watchLimit bounds the wait for a change, so that a client that has gone is
	// noticed.
	watchLimit = time.Minute
)

// Serve is the shim: it serves the directory until a client asks it to shut down,
// ctx is done, or it was idle for o.IdleExit. When ctx is done, the containers get
// SIGTERM and their grace. ready is called once clients can connect. Only one shim
// serves a directory at a time.
func Serve(ctx context.Context, o Options, logger *log.Logger, ready func() error) error {
	if o.PodUID == "" || o.Dir == "" {
		return errors.New("serve: the pod's UID and its directory are required")
	}
	if err := sealDescriptors(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	lock, err := LockDir(o.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()

	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s, err := newSupervisor(ctx, o, time.Now, logger)
	if err != nil {
		return err
	}
	l, err := ListenIn(o.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(filepath.Join(o.Dir, socketName)) }()
	s.stop = stop
	go s.accept(serving, l)
	go func() {
		s.awaitIdle(serving, cmp.Or(o.IdleExit, defaultIdleExit))
		stop()
	}()
	if err := ready(); err != nil {
		return err
	}
	select {
	case <-serving.Done():
	case <-ctx.Done():
		s.terminate(serving)
	}
	_ = l.Close()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return s.shutdown(end)
}

// LockDir makes sure that a directory has one shim, until the file is closed.
func LockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: another shim serves this directory: %w", dir, err)
	}
	return f, nil
}

func (s *Supervisor) accept(ctx context.Context, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() == nil {
				s.log.Printf("accept: %v", err)
				s.stop()
			}
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			s.serve(ctx, conn)
		}()
	}
}

// serve answers one request.
func (s *Supervisor) serve(ctx context.Context, conn net.Conn) {
	client := &fileConn{UnixConn: conn.(*net.UnixConn)}
	defer func() { closeAll(client.files) }()
	var q request
	if err := json.NewDecoder(client).Decode(&q); err != nil {
		return
	}
	if q.Op == opExec { // it ends when the client is gone
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			cancel()
		}()
	}
	r, files, err := s.answer(ctx, q, client.files)
	if err != nil {
		r = failure(err)
	}
	r.Version = Version
	_ = client.send(r, files) // a client that is gone asks again
	closeAll(files)
	if q.Op == opShutdown && err == nil {
		s.stop()
	}
}

// answer does what a request asks for. The files of the answer go to the client.
func (s *Supervisor) answer(ctx context.Context, q request, received []*os.File) (r response, files []*os.File, err error) {
	key := runKey{q.Name, q.Run}
	s.use()
	if q.Version != Version {
		return r, nil, fmt.Errorf("%w: the client speaks %d, this shim %d", ErrVersion, q.Version, Version)
	}
	switch q.Op {
	case opStart:
		if q.Spec == nil {
			return r, nil, errors.New("start: the spec is missing")
		}
		r.Run, err = s.start(*q.Spec)
	case opSignal:
		err = s.onLive(key, func(c *container) error { return s.signal(c, syscall.Signal(q.Signal)) })
	case opState:
		r.State, _ = s.snapshot()
	case opWatch:
		r.State = s.next(ctx, q.After)
	case opStdin:
		err = s.onLive(key, func(c *container) error { return c.writeStdin(q.Data, q.EOF) })
	case opResize:
		err = s.onLive(key, func(c *container) error { return c.resize(q.Rows, q.Cols) })
	case opExec:
		r.ExitCode, err = s.exec(ctx, key, q.Argv, received, q.TTY)
	case opDial:
		var conn *os.File
		if conn, err = s.dial(ctx, q.Address); err == nil {
			files = []*os.File{conn}
		}
	case opShutdown:
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		err = s.shutdown(end)
	default:
		err = fmt.Errorf("unknown request %q", q.Op)
	}
	return r, files, err
}

const socketName = "shim.sock"

// withSocket calls f with a path of dir's socket that fits into a socket address.
// The address has room for 107 bytes, so it goes through a descriptor of dir.
func withSocket(dir string, f func(path string) error) error {
	d, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName))
}

// DialIn connects to the socket of a directory.
func DialIn(ctx context.Context, dir string) (conn net.Conn, err error) {
	err = withSocket(dir, func(path string) error {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
		return err
	})
	return conn, err
}

// ListenIn listens on the socket of a directory. It replaces one that a dead shim
// left; the caller holds the directory's lock.
func ListenIn(dir string) (l *net.UnixListener, err error) {
	name := filepath.Join(dir, socketName)
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	err = withSocket(dir, func(path string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", name, err)
	}
	l.SetUnlinkOnClose(false)
	return l, os.Chmod(name, 0o600)
}

// awaitIdle returns when nothing has run and no request has come for the duration
// after, so that no run can start any more, or when ctx is done.
func (s *Supervisor) awaitIdle(ctx context.Context, after time.Duration) {
	s.use()
	tick := time.NewTicker(after / 8)
	defer tick.Stop()
	for idle := false; !idle; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		idle = s.runningLocked(nil) == 0 && s.now().Sub(s.used) > after
		s.closing = s.closing || idle
		s.mu.Unlock()
	}
}

// terminate passes a SIGTERM on and returns when every run has ended or has used
// up its grace, or ctx is done.
func (s *Supervisor) terminate(ctx context.Context) {
	s.mu.Lock()
	s.state.Terminating = s.now()
	_ = s.publish() // logged there
	all := slices.Collect(maps.Values(s.containers))
	s.mu.Unlock()
	var ending sync.WaitGroup
	for _, c := range all {
		ending.Go(func() {
			err := s.onLive(c.key(), func(c *container) error { return s.signal(c, syscall.SIGTERM) })
			if err != nil {
				s.log.Print(err)
			}
			grace := time.NewTimer(c.spec.StopGrace)
			defer grace.Stop()
			select {
			case <-c.ended:
			case <-grace.C:
			case <-ctx.Done():
			}
		})
	}
	ending.Wait()
}

// shutdown kills everything and returns when it is recorded. No run starts after it.
func (s *Supervisor) shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	all := slices.Collect(maps.Values(s.containers))
	s.mu.Unlock()
	for _, c := range all {
		<-c.started
		if !isClosed(c.ended) {
			c.ask(syscall.SIGKILL)
			s.killRun(c)
		}
	}
	for _, c := range all {
		select {
		case <-c.ended:
		case <-ctx.Done():
			return fmt.Errorf("%s does not end although it was killed: %w", c.key(), ctx.Err())
		}
	}
	return nil
}
