package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"syscall"
	"time"
)

// Client talks to the shim of one pod. It holds no connection between calls and
// is safe for concurrent use. A call fails with ErrNotRunning when the shim is gone.
type Client struct{ dir string }

// Attach returns a client of the shim that serves dir, or ErrNotRunning.
func Attach(ctx context.Context, dir string) (*Client, error) {
	c := &Client{dir: dir}
	_, err := c.State(ctx)
	return c, err
}

// Dir is the pod's directory.
func (c *Client) Dir() string { return c.dir }

// Start starts one run of a container and returns once the program runs or could
// not be started; the latter is no error but a Run with ReasonStartError. A run
// that was started before is returned as it is now. ErrConflict: an earlier run of
// the container still runs, or a later one was started.
func (c *Client) Start(ctx context.Context, spec ContainerSpec) (Run, error) {
	r, err := c.call(ctx, request{Op: opStart, Spec: &spec})
	if err != nil {
		return Run{}, err
	}
	if r.Run == nil {
		return Run{}, fmt.Errorf("shim in %s: start of %s/%d was answered without a run", c.dir, spec.Name, spec.Run)
	}
	return *r.Run, nil
}

// Signal sends sig to the main process of a run, as the kubelet does: what that
// has started is its own affair. A run that has ended is left alone.
func (c *Client) Signal(ctx context.Context, name string, run int, sig syscall.Signal) error {
	_, err := c.call(ctx, request{Op: opSignal, Name: name, Run: run, Signal: int(sig)})
	return err
}

// Kill sends SIGKILL to all processes of a run, orphaned ones included. It does
// not wait; Watch tells of the end. A run that has ended is left alone.
func (c *Client) Kill(ctx context.Context, name string, run int) error {
	_, err := c.call(ctx, request{Op: opKill, Name: name, Run: run})
	return err
}

// State returns the present state.
func (c *Client) State(ctx context.Context) (State, error) {
	r, err := c.call(ctx, request{Op: opState})
	if err != nil {
		return State{}, err
	}
	if r.State == nil {
		return State{}, fmt.Errorf("shim in %s answered without a state", c.dir)
	}
	return *r.State, nil
}

// Spec returns the spec of a run that this shim started, so that an agent that
// was started after it can run Command with the same environment.
func (c *Client) Spec(ctx context.Context, name string, run int) (ContainerSpec, error) {
	r, err := c.call(ctx, request{Op: opSpec, Name: name, Run: run})
	if err != nil {
		return ContainerSpec{}, err
	}
	if r.Spec == nil {
		return ContainerSpec{}, fmt.Errorf("shim in %s answered without a spec", c.dir)
	}
	return *r.Spec, nil
}

// WriteStdin writes to the standard input of a run whose spec asks for one, and
// closes it when eof is set. It blocks while the program does not read.
func (c *Client) WriteStdin(ctx context.Context, name string, run int, data []byte, eof bool) error {
	_, err := c.call(ctx, request{Op: opStdin, Name: name, Run: run, Data: data, EOF: eof})
	return err
}

// Resize sets the size of a run's terminal.
func (c *Client) Resize(ctx context.Context, name string, run int, rows, cols uint16) error {
	_, err := c.call(ctx, request{Op: opResize, Name: name, Run: run, Rows: rows, Cols: cols})
	return err
}

// Shutdown kills all containers, waits until they are gone and recorded, and ends
// the shim. That no shim runs is no error.
func (c *Client) Shutdown(ctx context.Context) error {
	_, err := c.call(ctx, request{Op: opShutdown})
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	return err
}

// Watch yields a state whenever the revision is greater than that of the one
// before, beginning with after; so Watch(ctx, 0) begins with the present. Changes
// in quick succession may come as one state; no final state is left out. It ends
// with an error: ErrNotRunning when the shim is gone, or the context's.
func (c *Client) Watch(ctx context.Context, after uint64) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		for {
			r, err := c.call(ctx, request{Op: opWatch, After: after})
			if errors.Is(err, ErrNotRunning) {
				// Its last change may be newer than its last answer.
				if last, e := ReadState(c.dir); e == nil && last.Revision > after && !yield(last, nil) {
					return
				}
			}
			if err != nil {
				yield(State{}, err)
				return
			}
			if r.State == nil || r.State.Revision <= after {
				continue
			}
			after = r.State.Revision
			if !yield(*r.State, nil) {
				return
			}
		}
	}
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	conn, err := dialSocket(ctx, c.dir)
	if err == nil {
		return conn, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w in %s: %w", ErrNotRunning, c.dir, err)
}

// lost turns the failure of a connection into what it means for the caller.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w in %s: it closed the connection", ErrNotRunning, c.dir)
	}
	return fmt.Errorf("shim in %s: %w", c.dir, err)
}

func (c *Client) call(ctx context.Context, q request) (response, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	q.Version = Version
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return response{}, c.lost(ctx, err)
	}
	var r response
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return response{}, c.lost(ctx, err)
	}
	return r, r.err()
}
