// Package client runs the trials of an experiment anywhere: it asks the programmatic
// API (vernier.v1, docs/api.md) for trials, keeps their leases while they run, and
// says how they ended.
package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
)

const (
	// lease is how long a trial stays this program's when it no longer reports.
	lease = time.Minute
	// wait is how long one question waits for a trial.
	wait = 20 * time.Second
	// A call that fails in passing is made again after tryPause, then after twice as long,
	// up to longPause: tries times, and for as long as patience once the service has
	// answered. A manager that is replaced is away for half a minute.
	tries     = 6
	tryPause  = 200 * time.Millisecond
	longPause = 5 * time.Second
	patience  = 2 * time.Minute
)

// ErrDone says that there are no more trials: the experiment has ended.
var ErrDone = errors.New("the experiment has no more trials")

// ErrStale says that a trial is not this program's any more: its lease has expired and
// another worker runs it. Its result does not count.
var ErrStale = errors.New("the trial was handed out again")

// Client calls the API. Its methods may be called from several goroutines.
type Client struct {
	// The calls as they are.
	vernierv1.ExperimentServiceClient
	Dashboard vernierv1.DashboardServiceClient

	// Worker says, for people, who runs the trials. Empty: the name of the user.
	Worker string
	// Lease is how long a trial stays this program's without a heartbeat. Zero: one
	// minute.
	Lease time.Duration

	answered atomic.Bool
}

// New makes a client of the API at a URL, such as http://127.0.0.1:20443, which token
// lets in. h nil means http.DefaultClient.
func New(url, token string, h *http.Client) *Client {
	if h == nil {
		h = http.DefaultClient
	}
	authorize := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			r.Header().Set("Authorization", "Bearer "+token)
			return next(ctx, r)
		}
	})
	authorized := connect.WithInterceptors(authorize)
	return &Client{ExperimentServiceClient: vernierv1.NewExperimentServiceClient(h, url, authorized), Dashboard: vernierv1.NewDashboardServiceClient(h, url, authorized)}
}

// Reason is the word for programs that an error of the API carries, such as
// STALE_ATTEMPT; empty for other errors.
func Reason(err error) string {
	var e *connect.Error
	if !errors.As(err, &e) {
		return ""
	}
	for _, d := range e.Details() {
		if v, err := d.Value(); err == nil {
			if info, ok := v.(*vernierv1.ErrorInfo); ok {
				return info.GetReason()
			}
		}
	}
	return ""
}

// Trial is one that this program runs. Its lease is kept until it is completed or
// released, or that is refused, or the context that it was asked with ends.
type Trial struct {
	*vernierv1.Trial
	client *Client
	end    context.CancelCauseFunc
	beats  sync.WaitGroup
}

// Ask waits for a trial of an experiment, which is namespaces/NAMESPACE/experiments/NAME.
// running ends when the trial should: it is to be stopped, another worker runs it, it was
// deleted, this program may not run it any more, or it was completed; context.Cause says
// which. ErrDone: there are no more trials.
func (c *Client) Ask(ctx context.Context, experiment string) (t *Trial, running context.Context, err error) {
	length := c.Lease
	if length == 0 {
		length = lease
	}
	for {
		request := &vernierv1.SuggestTrialsRequest{
			Parent: experiment, Count: 1, Worker: c.Worker, RequestId: rand.Text(),
			Lease: durationpb.New(length), MaxWait: durationpb.New(wait),
		}
		answer, err := retry(ctx, c, c.SuggestTrials, request)
		switch {
		case err != nil:
			return nil, nil, err
		case len(answer.GetTrials()) > 0:
			t, running = c.start(ctx, answer.GetTrials()[0], length)
			return t, running, nil
		case answer.GetState() != vernierv1.Experiment_ACTIVE: // until then a trial that runs may be lost
			return nil, nil, fmt.Errorf("%w: %s", ErrDone, answer.GetMessage())
		}
	}
}

func (c *Client) start(ctx context.Context, trial *vernierv1.Trial, length time.Duration) (*Trial, context.Context) {
	running, end := context.WithCancelCause(ctx)
	t := &Trial{Trial: trial, client: c, end: end}
	t.beats.Go(func() { t.beat(running, length/4) })
	return t, running
}

// StopError is why a trial should be stopped: the cause of the end of its context.
type StopError struct{ Why string }

func (e *StopError) Error() string { return "the trial is to be stopped: " + e.Why }

// beat reports nothing, again and again, so that the trial stays this program's.
func (t *Trial) beat(running context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-running.Done():
			return
		case <-tick.C:
		}
		// What fails in passing is tried again at the next beat, and so is what has no
		// answer for so long that the lease may end: its server may be gone.
		within, enough := context.WithTimeout(running, 2*every)
		_ = t.report(within, nil)
		enough()
	}
}

// Report sends what was measured at a step. An error that is a *StopError, or
// ErrStale, means that the trial should end now; the context that Ask gave has ended too.
func (t *Trial) Report(ctx context.Context, step int64, values map[string]float64) error {
	return t.report(ctx, []*vernierv1.Measurement{{Step: step, Values: values}})
}

func (t *Trial) report(ctx context.Context, m []*vernierv1.Measurement) error {
	answer, err := retry(ctx, t.client, t.client.ReportTrial, &vernierv1.ReportTrialRequest{Name: t.GetName(), Attempt: t.GetAttempt(), Measurements: m})
	if err == nil && answer.GetDirective() == vernierv1.ReportTrialResponse_STOP {
		err = &StopError{answer.GetWhy()}
		t.end(err)
	}
	switch Reason(err) {
	case "STALE_ATTEMPT", "NOT_FOUND", "FORBIDDEN", "UNAUTHENTICATED":
		t.end(err)
	}
	return err
}

// Succeed completes the trial with its final values. Without any, those that were
// reported count.
func (t *Trial) Succeed(ctx context.Context, values map[string]float64) error {
	return t.complete(ctx, &vernierv1.CompleteTrialRequest{Outcome: &vernierv1.CompleteTrialRequest_Succeeded_{
		Succeeded: &vernierv1.CompleteTrialRequest_Succeeded{Values: values}}})
}

// Prune completes the trial as stopped early: what was reported counts.
func (t *Trial) Prune(ctx context.Context) error {
	return t.complete(ctx, &vernierv1.CompleteTrialRequest{Outcome: &vernierv1.CompleteTrialRequest_Pruned_{
		Pruned: &vernierv1.CompleteTrialRequest_Pruned{}}})
}

// Fail completes the trial as failed.
func (t *Trial) Fail(ctx context.Context, reason string) error {
	return t.complete(ctx, &vernierv1.CompleteTrialRequest{Outcome: &vernierv1.CompleteTrialRequest_Failed_{
		Failed: &vernierv1.CompleteTrialRequest_Failed{Reason: reason}}})
}

func (t *Trial) complete(ctx context.Context, r *vernierv1.CompleteTrialRequest) error {
	r.Name, r.Attempt = t.GetName(), t.GetAttempt()
	_, err := retry(ctx, t.client, t.client.CompleteTrial, r)
	return t.over(ctx, err)
}

// Release hands the trial back, so that another worker can run it.
func (t *Trial) Release(ctx context.Context) error {
	_, err := retry(ctx, t.client, t.client.ReleaseTrial, &vernierv1.ReleaseTrialRequest{Name: t.GetName(), Attempt: t.GetAttempt()})
	return t.over(ctx, err)
}

// over ends the heartbeats, unless the call that was to end the trial may be made again:
// a program that gives up must not keep the trial for ever.
func (t *Trial) over(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil && connect.CodeOf(err) != connect.CodeUnavailable {
		t.end(err)
		t.beats.Wait()
	}
	return err
}

// retry makes a call again that failed in passing. All calls of the API may be made
// again.
func retry[Q, A any](ctx context.Context, c *Client, call func(context.Context, *Q) (*A, error), request *Q) (*A, error) {
	began, pause := time.Now(), tryPause
	for i := 1; ; i++ {
		answer, err := call(ctx, request)
		code := connect.CodeOf(err)
		if err == nil || code != connect.CodeUnavailable {
			c.answered.Store(true)
		}
		switch {
		case err == nil:
			return answer, nil
		case Reason(err) == "STALE_ATTEMPT":
			return nil, fmt.Errorf("%w: %w", ErrStale, err)
		case code != connect.CodeUnavailable || i >= tries && !(c.answered.Load() && time.Since(began) < patience):
			return nil, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
		pause = min(2*pause, longPause)
	}
}
