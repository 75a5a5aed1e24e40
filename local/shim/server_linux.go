package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
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
	lock, err := lockDir(o.Dir)
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
	l, err := listenSocket(o.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(filepath.Join(o.Dir, socketName)) }()
	s.idle = newIdle(o.IdleExit, func() bool { return s.running(nil) == 0 }, stop)
	v := &server{supervisor: s, stop: stop}
	go v.accept(serving, l)
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

// lockDir makes sure that a directory has one shim.
func lockDir(dir string) (*os.File, error) {
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

// idle ends the shim when it is not needed any more.
type idle struct {
	after time.Duration
	quiet func() bool // asked under mu, so that an answer is not old when it is used
	stop  func()

	mu      sync.Mutex
	clients int
	timer   *time.Timer
}

func newIdle(after time.Duration, quiet func() bool, stop func()) *idle {
	if after == 0 {
		after = defaultIdleExit
	}
	i := &idle{after: after, quiet: quiet, stop: stop}
	i.check()
	return i
}

// check starts the count-down if nothing runs and no client is connected.
func (i *idle) check() { i.client(0) }

func (i *idle) client(change int) {
	if i.after < 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clients += change
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
	if i.clients == 0 && i.quiet() {
		i.timer = time.AfterFunc(i.after, i.expire)
	}
}

func (i *idle) expire() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.clients == 0 && i.quiet() {
		i.stop()
	}
}

// server speaks the protocol.
type server struct {
	supervisor *Supervisor
	stop       func()
}

func (v *server) accept(ctx context.Context, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() == nil {
				v.supervisor.log.Printf("accept: %v", err)
				v.stop()
			}
			return
		}
		v.supervisor.idle.client(1)
		go func() {
			defer v.supervisor.idle.client(-1)
			defer func() { _ = conn.Close() }()
			v.serve(ctx, conn)
		}()
	}
}

// serve answers one request.
func (v *server) serve(ctx context.Context, conn net.Conn) {
	var q request
	if err := json.NewDecoder(conn).Decode(&q); err != nil {
		return
	}
	r, err := v.answer(ctx, q)
	if err != nil {
		r = failure(err)
	}
	r.Version = Version
	_ = json.NewEncoder(conn).Encode(r) // a client that is gone asks again
	if q.Op == opShutdown && err == nil {
		v.stop()
	}
}

func (v *server) answer(ctx context.Context, q request) (r response, err error) {
	s, key := v.supervisor, runKey{q.Name, q.Run}
	if q.Version != Version {
		return r, fmt.Errorf("%w: the client speaks %d, this shim %d", ErrVersion, q.Version, Version)
	}
	switch q.Op {
	case opStart:
		if q.Spec == nil {
			return r, errors.New("start: the spec is missing")
		}
		var run Run
		run, err = s.start(*q.Spec)
		r.Run = &run
	case opSignal:
		err = s.signal(key, syscall.Signal(q.Signal))
	case opKill:
		err = s.kill(key)
	case opState:
		state, _ := s.snapshot()
		r.State = &state
	case opWatch:
		state := s.next(ctx, q.After)
		r.State = &state
	case opSpec:
		r.Spec, err = s.spec(key)
	case opStdin:
		err = s.writeStdin(key, q.Data, q.EOF)
	case opResize:
		err = s.resize(key, q.Rows, q.Cols)
	case opShutdown:
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		err = s.shutdown(end)
	default:
		err = fmt.Errorf("unknown request %q", q.Op)
	}
	return r, err
}
