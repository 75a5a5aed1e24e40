package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/client"
)

// torture is what 64 clients did to one experiment.
type torture struct {
	parent string
	token  string

	mu        sync.Mutex
	managers  []string          // URLs
	handed    map[string]string // request by trial and attempt
	accepted  map[string]string // attempt and value by trial
	abandoned []*vernierv1.Trial
	wrong     []string
}

func (o *torture) complain(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// call makes a call at any manager until one answers.
func call[Q, A any](ctx context.Context, o *torture, random *rand.Rand, method func(*client.Client) func(context.Context, *Q) (*A, error), request *Q) (*A, error) {
	for {
		o.mu.Lock()
		c := client.New(o.managers[random.IntN(len(o.managers))], o.token, nil)
		o.mu.Unlock()
		answer, err := method(c)(ctx, request)
		code := connect.CodeOf(err)
		if err == nil || ctx.Err() != nil || code != connect.CodeUnavailable && code != connect.CodeCanceled {
			return answer, err
		}
	}
}

func suggestOf(c *client.Client) func(context.Context, *vernierv1.SuggestTrialsRequest) (*vernierv1.SuggestTrialsResponse, error) {
	return c.SuggestTrials
}

func completeOf(c *client.Client) func(context.Context, *vernierv1.CompleteTrialRequest) (*vernierv1.Trial, error) {
	return c.CompleteTrial
}

func reportOf(c *client.Client) func(context.Context, *vernierv1.ReportTrialRequest) (*vernierv1.ReportTrialResponse, error) {
	return c.ReportTrial
}

func releaseOf(c *client.Client) func(context.Context, *vernierv1.ReleaseTrialRequest) (*vernierv1.Trial, error) {
	return c.ReleaseTrial
}

// work runs trials until there are no more.
func (o *torture) work(ctx context.Context, worker int) {
	random := rand.New(rand.NewPCG(uint64(worker), 1))
	for i := 0; ; i++ {
		ask := &vernierv1.SuggestTrialsRequest{
			Parent: o.parent, RequestId: fmt.Sprint(worker, "-", i), Count: 1 + random.Int32N(2), Worker: fmt.Sprint(worker),
			Lease: durationpb.New(6 * time.Second), MaxWait: durationpb.New(2 * time.Second),
		}
		answer, err := call(ctx, o, random, suggestOf, ask)
		if err == nil && random.IntN(3) == 0 { // as if the answer had been lost
			answer, err = call(ctx, o, random, suggestOf, ask)
		}
		if err != nil {
			o.complain("worker %d asks: %v", worker, err)
			return
		}
		if answer.GetState() != vernierv1.Experiment_ACTIVE {
			return
		}
		for _, t := range answer.GetTrials() {
			o.got(t, ask.GetRequestId())
			o.run(ctx, random, t, worker)
		}
	}
}

// got notes the one worker that may run an attempt.
func (o *torture) got(t *vernierv1.Trial, request string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	attempt := fmt.Sprint(t.GetName(), " ", t.GetAttempt())
	if before, ok := o.handed[attempt]; ok && before != request {
		o.wrong = append(o.wrong, fmt.Sprintf("%s went to %s and to %s", attempt, before, request))
	}
	o.handed[attempt] = request
}

func (o *torture) run(ctx context.Context, random *rand.Rand, t *vernierv1.Trial, worker int) {
	switch random.IntN(10) {
	case 0, 1: // killed
		o.mu.Lock()
		o.abandoned = append(o.abandoned, t)
		o.mu.Unlock()
		return
	case 2: // preempted
		if _, err := call(ctx, o, random, releaseOf, &vernierv1.ReleaseTrialRequest{Name: t.GetName(), Attempt: t.GetAttempt()}); err != nil && client.Reason(err) != "STALE_ATTEMPT" {
			o.complain("release %s: %v", t.GetName(), err)
		}
		return
	}
	for range random.IntN(3) { // the same report more than once
		_, err := call(ctx, o, random, reportOf, &vernierv1.ReportTrialRequest{Name: t.GetName(), Attempt: t.GetAttempt(),
			Measurements: []*vernierv1.Measurement{{Step: 1, Values: map[string]float64{"loss": 1}}}})
		if err != nil && client.Reason(err) != "STALE_ATTEMPT" {
			o.complain("report %s: %v", t.GetName(), err)
		}
	}
	loss := float64(worker) + random.Float64()
	for range 1 + random.IntN(2) {
		_, err := call(ctx, o, random, completeOf, succeeded(t, loss))
		switch {
		case err == nil:
			o.accept(t, loss)
		case client.Reason(err) != "STALE_ATTEMPT":
			o.complain("complete %s, attempt %d: %v", t.GetName(), t.GetAttempt(), err)
		}
	}
}

// accept notes a result that was taken: of a trial only one may be.
func (o *torture) accept(t *vernierv1.Trial, loss float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	result := fmt.Sprint(t.GetAttempt(), " ", loss)
	if before, ok := o.accepted[t.GetName()]; ok && before != result {
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %s was taken, and %s", t.GetName(), before, result))
	}
	o.accepted[t.GetName()] = result
}

// Clients that are killed, send everything twice, come late, and managers that die:
// each trial is completed once, none is lost, and who has an old attempt is told so.
func TestLeasesUnderTorture(t *testing.T) {
	const clients, trials = 64, 150
	w := newWorld(t, never)
	w.apiToken = t.TempDir() + "/api.token"
	e := w.experiment("exp", outside(clients, trials))
	w.create(e)
	stop := w.start()
	o := &torture{parent: w.resource(e), managers: []string{w.api}, handed: map[string]string{}, accepted: map[string]string{}}
	w.start() // a second manager, which hands out at the same time
	o.managers = append(o.managers, w.api)
	token, err := os.ReadFile(w.apiToken)
	if err != nil {
		t.Fatal(err)
	}
	o.token = strings.TrimSpace(string(token))
	var group sync.WaitGroup
	for worker := range clients {
		group.Go(func() { o.work(t.Context(), worker) })
	}
	w.eventually("some trials are over", func() string {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.accepted) < trials/4 {
			return fmt.Sprint(len(o.accepted), " accepted, ", len(o.handed), " handed, ", len(o.abandoned), " abandoned, ", o.wrong)
		}
		o.managers = o.managers[1:]
		return ""
	})
	stop()
	w.start()
	o.mu.Lock()
	o.managers = append(o.managers, w.api)
	o.mu.Unlock()
	group.Wait()
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	for _, wrong := range o.wrong {
		t.Error(wrong)
	}
	want, got := map[string]string{}, map[string]string{}
	for i, tr := range w.trialsOf(e) {
		lease, _ := tr.Lease()
		name := o.parent + "/trials/" + v1beta1.TrialName("exp", i)
		want[name] = o.accepted[name]
		if tr.IsSucceeded() {
			got[o.parent+"/trials/"+tr.Name] = fmt.Sprint(lease.Attempt, " ", tr.Status.Observation.Metrics[0].Latest)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != trials {
		t.Errorf("%d trials succeeded: %s", len(got), diff)
	}
	if len(o.abandoned) == 0 {
		t.Error("no client was killed")
	}
	random := rand.New(rand.NewPCG(0, 0))
	for _, late := range o.abandoned {
		_, reportErr := call(t.Context(), o, random, reportOf, &vernierv1.ReportTrialRequest{Name: late.GetName(), Attempt: late.GetAttempt()})
		_, completeErr := call(t.Context(), o, random, completeOf, succeeded(late, 0))
		if client.Reason(reportErr) != "STALE_ATTEMPT" || client.Reason(completeErr) != "STALE_ATTEMPT" {
			t.Errorf("%s, attempt %d, was abandoned: %v, %v", late.GetName(), late.GetAttempt(), reportErr, completeErr)
		}
	}
}
