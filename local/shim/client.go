package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/vernier-ml/vernier/local/statefile"
)

// Client talks to the shim of one pod. It holds no connection between calls and
// is safe for concurrent use. A call fails with ErrNotRunning when the shim is gone.
type Client struct{ dir string }

// Attach returns a client of the shim that serves dir, and its state, or ErrNotRunning.
func Attach(ctx context.Context, dir string) (*Client, State, error) {
	c := &Client{dir: dir}
	state, err := c.State(ctx)
	return c, state, err
}

// Dir is the pod's directory.
func (c *Client) Dir() string { return c.dir }

// Start starts one run of a container and returns once the program runs or could
// not be started; the latter is no error but a Run with ReasonStartError. A run
// that was started before is returned as it is now. ErrConflict: an earlier run of
// the container still runs, or a later one was started.
func (c *Client) Start(ctx context.Context, spec ContainerSpec) (Run, error) {
	r, err := c.call(ctx, request{Op: opStart, Spec: &spec})
	return r.Run, err
}

// Signal sends sig to the main process of a run, as the kubelet does: what that
// has started is its own affair. SIGKILL goes to all processes of the run, orphaned
// ones included. It does not wait; Watch tells of the end. A run that has ended is
// left alone.
func (c *Client) Signal(ctx context.Context, name string, run int, sig syscall.Signal) error {
	_, err := c.call(ctx, request{Op: opSignal, Name: name, Run: run, Signal: int(sig)})
	return err
}

// State returns the present state.
func (c *Client) State(ctx context.Context) (State, error) {
	r, err := c.call(ctx, request{Op: opState})
	return r.State, err
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
			if r.State.Revision <= after {
				continue
			}
			after = r.State.Revision
			if !yield(r.State, nil) {
				return
			}
		}
	}
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
	r, _, err := c.exchange(ctx, q)
	return r, err
}

const stateName = "state.json"

// ReadState reads what the shim of dir recorded last, whether it lives or not. It
// wraps fs.ErrNotExist when there never was one, and statefile.ErrCorrupt when it
// cannot be decoded.
func ReadState(dir string) (State, error) {
	path := filepath.Join(dir, stateName)
	var s State
	if err := statefile.ReadJSON(path, &s); err != nil {
		return State{}, err
	}
	if s.Version != Version {
		return State{}, fmt.Errorf("%s: %w: the file has %d, this program speaks %d", path, ErrVersion, s.Version, Version)
	}
	return s, nil
}

// forget drops the oldest runs of each container beyond KeepRuns. A run that has
// not ended is always kept.
func forget(runs []Run) []Run {
	newer := make(map[string]int)
	kept := make([]Run, 0, len(runs))
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		if newer[r.Name] < KeepRuns || r.Phase != Exited {
			kept = append(kept, r)
		}
		newer[r.Name]++
	}
	slices.Reverse(kept)
	return kept
}

// op names a request.
type op string

const (
	opStart    op = "start"
	opSignal   op = "signal"
	opState    op = "state"
	opWatch    op = "watch" // answered when the revision is greater, or after a while
	opStdin    op = "stdin"
	opResize   op = "resize"
	opExec     op = "exec" // comes with three streams, answered at the end
	opDial     op = "dial" // answered with a connection
	opShutdown op = "shutdown"
)

// request is the line that a client sends.
type request struct {
	Version int            `json:"v"`
	Op      op             `json:"op"`
	Name    string         `json:"name,omitempty"`
	Run     int            `json:"run,omitempty"`
	Spec    *ContainerSpec `json:"spec,omitempty"`    // start
	Signal  int            `json:"signal,omitempty"`  // signal
	After   uint64         `json:"after,omitempty"`   // watch
	Data    []byte         `json:"data,omitempty"`    // stdin
	EOF     bool           `json:"eof,omitempty"`     // stdin
	Rows    uint16         `json:"rows,omitempty"`    // resize
	Cols    uint16         `json:"cols,omitempty"`    // resize
	Argv    []string       `json:"argv,omitempty"`    // exec
	TTY     bool           `json:"tty,omitempty"`     // exec
	Address string         `json:"address,omitempty"` // dial
}

// response is the line that the shim answers.
type response struct {
	Version int    `json:"v"`
	Code    string `json:"code,omitempty"` // of the sentinel that Error wraps
	Error   string `json:"error,omitempty"`
	Run     Run    `json:"run,omitzero"`
	State   State  `json:"state,omitzero"`
	// ExitCode is that of a command.
	ExitCode int `json:"exitCode,omitempty"`
}

// sentinels are the errors that keep their identity on the wire.
var sentinels = []struct {
	code string
	err  error
}{
	{"unknownRun", ErrUnknownRun},
	{"conflict", ErrConflict},
	{"version", ErrVersion},
	{"notRunning", ErrNotRunning},
}

// remoteError is an error that the shim answered.
type remoteError struct {
	text     string
	sentinel error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.sentinel }

func failure(err error) response {
	r := response{Version: Version, Error: err.Error()}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			r.Code = s.code
		}
	}
	return r
}

func (r response) err() error {
	if r.Error == "" {
		if r.Version != Version {
			return fmt.Errorf("%w: the shim speaks %d, this program %d", ErrVersion, r.Version, Version)
		}
		return nil
	}
	e := &remoteError{text: r.Error}
	if strings.HasPrefix(r.Error, "unknown request ") { // an older shim
		e.sentinel = ErrVersion
	}
	for _, s := range sentinels {
		if s.code == r.Code {
			e.sentinel = s.err
		}
	}
	return e
}
