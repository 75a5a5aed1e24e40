package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/client"
)

// answers are those of a server.
type answers struct {
	vernierv1.UnimplementedExperimentServiceHandler
	suggest          func() *vernierv1.SuggestTrialsResponse
	report, complete error
	hang             func(context.Context) // in a report
}

func (a *answers) SuggestTrials(context.Context, *vernierv1.SuggestTrialsRequest) (*vernierv1.SuggestTrialsResponse, error) {
	if a.suggest != nil {
		return a.suggest(), nil
	}
	return handsOut(), nil
}

func (a *answers) ReportTrial(ctx context.Context, _ *vernierv1.ReportTrialRequest) (*vernierv1.ReportTrialResponse, error) {
	if a.hang != nil {
		a.hang(ctx)
	}
	return &vernierv1.ReportTrialResponse{}, a.report
}

func (a *answers) CompleteTrial(context.Context, *vernierv1.CompleteTrialRequest) (*vernierv1.Trial, error) {
	return &vernierv1.Trial{}, a.complete
}

func handsOut() *vernierv1.SuggestTrialsResponse {
	return &vernierv1.SuggestTrialsResponse{State: vernierv1.Experiment_ACTIVE, Trials: []*vernierv1.Trial{{Name: "t", Attempt: 1}}}
}

func refused(t *testing.T, code connect.Code, reason string) error {
	t.Helper()
	err := connect.NewError(code, errors.New("no"))
	detail, detailErr := connect.NewErrorDetail(&vernierv1.ErrorInfo{Reason: reason})
	if detailErr != nil {
		t.Fatal(detailErr)
	}
	err.AddDetail(detail)
	return err
}

func serve(t *testing.T, a *answers) *client.Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(vernierv1.NewExperimentServiceHandler(a))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c := client.New(s.URL, "token", s.Client())
	c.Lease = time.Second
	return c
}

func TestARefusedHeartbeatEndsTheTrial(t *testing.T) {
	for reason, code := range map[string]connect.Code{
		"NOT_FOUND": connect.CodeNotFound, "FORBIDDEN": connect.CodePermissionDenied,
		"UNAUTHENTICATED": connect.CodeUnauthenticated, "STALE_ATTEMPT": connect.CodeAborted,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			c := serve(t, &answers{report: refused(t, code, reason)})
			_, running, err := c.Ask(t.Context(), "e")
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-running.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the trial goes on")
			}
			if got := client.Reason(context.Cause(running)); got != reason {
				t.Errorf("the cause is %v", context.Cause(running))
			}
		})
	}
}

// A program that was refused may give up; a trial that it kept would run for ever.
func TestAResultThatIsRefusedEndsTheHeartbeats(t *testing.T) {
	for reason, code := range map[string]connect.Code{
		"INVALID": connect.CodeInvalidArgument, "NOT_MEASURED": connect.CodeFailedPrecondition, "NOT_FOUND": connect.CodeNotFound,
	} {
		t.Run(reason, func(t *testing.T) {
			c := serve(t, &answers{complete: refused(t, code, reason)})
			trial, running, err := c.Ask(t.Context(), "e")
			if err != nil {
				t.Fatal(err)
			}
			if err := trial.Succeed(t.Context(), nil); client.Reason(err) != reason || running.Err() == nil {
				t.Errorf("%v; its context: %v", err, running.Err())
			}
		})
	}
	t.Run("a call that was broken off may be made again", func(t *testing.T) {
		trial, running, err := serve(t, &answers{}).Ask(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := trial.Succeed(gone, nil); err == nil || running.Err() != nil {
			t.Errorf("%v; its context: %v", err, running.Err())
		}
		if err := trial.Succeed(t.Context(), nil); err != nil || running.Err() == nil {
			t.Errorf("again: %v; its context: %v", err, running.Err())
		}
	})
}

func TestTheLastTrialsAreWaitedFor(t *testing.T) {
	rest := []*vernierv1.SuggestTrialsResponse{
		{State: vernierv1.Experiment_ACTIVE, Exhausted: true}, // the last trial runs elsewhere, and is lost
		handsOut(),
		{State: vernierv1.Experiment_ACTIVE, Exhausted: true},
		{State: vernierv1.Experiment_SUCCEEDED, Exhausted: true},
	}
	c := serve(t, &answers{suggest: func() (next *vernierv1.SuggestTrialsResponse) {
		next, rest = rest[0], rest[1:]
		return next
	}})
	trial, _, err := c.Ask(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Succeed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Ask(t.Context(), "e"); !errors.Is(err, client.ErrDone) || len(rest) > 0 {
		t.Errorf("%d answers left: %v", len(rest), err)
	}
}

// A server that has lost its power does not say so: the trial must be kept by way of
// another one before its lease ends.
func TestAHeartbeatWithoutAnAnswerIsSentAgain(t *testing.T) {
	beats := make(chan struct{}, 100)
	a := &answers{}
	a.hang = func(ctx context.Context) {
		select {
		case beats <- struct{}{}:
		default:
		}
		<-ctx.Done()
	}
	c := serve(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, _, err := c.Ask(ctx, "e"); err != nil {
		t.Fatal(err)
	}
	late := time.After(10 * time.Second)
	for i := range 3 {
		select {
		case <-beats:
		case <-late:
			t.Fatalf("after %d heartbeats there was none", i)
		}
	}
}
