package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"time"

	"connectrpc.com/connect"
)

const (
	// A pod may report before the API server has heard of its address: it is
	// looked for this often, this many times.
	katibPause = 250 * time.Millisecond
	katibTries = 40
	// maxKatibWaiting bounds the calls that wait for that.
	maxKatibWaiting = 64
	// maxKatibQuestion bounds a call that reads or deletes, in bytes: it has names
	// and times.
	maxKatibQuestion = 64 << 10
)

// errWaiting says that there is no room to wait for one more pod.
var errWaiting = errors.New("too many callers wait for their pods to be known: try again")

// katibCaller is who calls: an address, and the pods that have it.
type katibCaller struct {
	address netip.Addr
	pods    []KatibReporter
}

// katibCallerKey is that of the katibCaller in a request's context.
type katibCallerKey struct{}

func callerOf(ctx context.Context) katibCaller {
	c, _ := ctx.Value(katibCallerKey{}).(katibCaller) // guard has put it there
	return c
}

// katibCalls are the names of calls in metrics, by method.
func katibCalls() map[string]string {
	return map[string]string{"ReportObservationLog": "report", "GetObservationLog": "get", "DeleteObservationLog": "delete"}
}

// guard finds out who calls before it reads what is said: any program that reaches the port
// may send any number of bodies, and decoded they take twenty times their size. Only
// of a trial's pod is a long one read.
func (s *katibService) guard(next http.Handler) http.Handler {
	faults := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := katibCalls()[path.Base(r.URL.Path)]
		c, err := s.whoCalls(r, call)
		if err != nil {
			_ = faults.Write(w, r, s.count(call, err)) // a client that went away needs no answer
			return
		}
		if call != "report" {
			r.Body = http.MaxBytesReader(w, r.Body, maxKatibQuestion)
		}
		r = r.WithContext(context.WithValue(r.Context(), katibCallerKey{}, c))
		if call == "get" {
			s.inTurn(next, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// whoCalls looks for the pod that calls. One that is not known yet is waited for,
// unless it only reads, which everybody may.
func (s *katibService) whoCalls(r *http.Request, call string) (katibCaller, error) {
	var c katibCaller
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err == nil {
		c.address = peer.Addr().Unmap().WithZone("")
	}
	switch {
	case call == "":
		return c, nil // nothing is served there
	case err != nil && call != "get":
		return c, denied("this socket shows metrics and takes none: a trial pushes to its own collector (use the collector Push)")
	}
	if c.pods, err = s.pods(r.Context(), c.address); err != nil || len(c.pods) > 0 || call == "get" {
		return c, err
	}
	if c.pods, err = s.await(r.Context(), c.address); err == nil && len(c.pods) == 0 {
		err = denied("no pod of a trial has the address %s: metrics are taken from the pods of the trial itself, and not from those on the host's network (use the collector Push there)", c.address)
	}
	return c, err
}

// speaksFor returns the pod that calls, if it is one of the trial's.
func (c katibCaller) speaksFor(trial string) (KatibReporter, error) {
	switch {
	case len(c.pods) != 1:
		return KatibReporter{}, denied("%d pods of trials have the address %s, so it does not tell which one calls", len(c.pods), c.address)
	case c.pods[0].Trial.Name != trial:
		return KatibReporter{}, denied("the pod with the address %s belongs to trial %q; it may not speak for %q", c.address, c.pods[0].Trial.Name, trial)
	}
	return c.pods[0], nil
}

// await looks for the calling pod until it is known or patience ends.
func (s *katibService) await(ctx context.Context, address netip.Addr) ([]KatibReporter, error) {
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return nil, connect.NewError(connect.CodeUnavailable, errWaiting)
	}
	for range katibTries {
		select {
		case <-s.cfg.After(katibPause):
		case <-ctx.Done():
			return nil, connect.NewError(connect.CodeCanceled, ctx.Err())
		}
		if pods, err := s.pods(ctx, address); err != nil || len(pods) > 0 {
			return pods, err
		}
	}
	return nil, nil
}

// pods are those with an address.
func (s *katibService) pods(ctx context.Context, address netip.Addr) ([]KatibReporter, error) {
	if !address.IsValid() {
		return nil, nil
	}
	pods, err := s.cfg.Reporters(ctx, address)
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	return pods, nil
}

func denied(format string, args ...any) error {
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(format, args...))
}
