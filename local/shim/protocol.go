package shim

import (
	"errors"
	"fmt"
)

// op names a request.
type op string

const (
	opStart    op = "start"
	opSignal   op = "signal"
	opState    op = "state"
	opWatch    op = "watch" // answered when the revision is greater, or after a while
	opSpec     op = "spec"
	opStdin    op = "stdin"
	opResize   op = "resize"
	opShutdown op = "shutdown"
)

// request is the line that a client sends.
type request struct {
	Version int            `json:"v"`
	Op      op             `json:"op"`
	Name    string         `json:"name,omitempty"`
	Run     int            `json:"run,omitempty"`
	Spec    *ContainerSpec `json:"spec,omitempty"`   // start
	Signal  int            `json:"signal,omitempty"` // signal
	After   uint64         `json:"after,omitempty"`  // watch
	Data    []byte         `json:"data,omitempty"`   // stdin
	EOF     bool           `json:"eof,omitempty"`    // stdin
	Rows    uint16         `json:"rows,omitempty"`   // resize
	Cols    uint16         `json:"cols,omitempty"`   // resize
}

// response is the line that the shim answers.
type response struct {
	Version int           `json:"v"`
	Code    string        `json:"code,omitempty"` // of the sentinel that Error wraps
	Error   string        `json:"error,omitempty"`
	Run     Run           `json:"run,omitzero"`
	State   State         `json:"state,omitzero"`
	Spec    ContainerSpec `json:"spec,omitzero"`
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
	for _, s := range sentinels {
		if s.code == r.Code {
			e.sentinel = s.err
		}
	}
	return e
}
