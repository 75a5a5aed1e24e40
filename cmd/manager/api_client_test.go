package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/client"
)

// The client keeps the trials that it runs, and gives up those that it is told to.
func TestTheClientKeepsItsTrials(t *testing.T) {
	w := withAPI(t)
	e := w.experiment("exp", outside(1, 2))
	w.create(e)
	c := w.caller()
	c.Lease = 8 * time.Second
	trial, running, err := c.Ask(t.Context(), w.resource(e))
	if err != nil {
		t.Fatal(err)
	}
	// Longer than its lease: the trial is still this client's.
	other := w.suggest(w.caller(), &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), MaxWait: durationpb.New(c.Lease + 4*time.Second)})
	if len(other) > 0 || running.Err() != nil {
		t.Fatalf("another got %v, %v", other, context.Cause(running))
	}
	if err := trial.Succeed(t.Context(), map[string]float64{"loss": 1}); err != nil || trial.GetAttempt() != 1 {
		t.Fatalf("attempt %d: %v", trial.GetAttempt(), err)
	}
	if trial, running, err = c.Ask(t.Context(), w.resource(e)); err != nil {
		t.Fatal(err)
	}
	trials := w.trialsOf(e)
	stop := slices.IndexFunc(trials, func(tr v1beta1.Trial) bool { return strings.HasSuffix(trial.GetName(), tr.Name) })
	asked := trials[stop].DeepCopy()
	asked.Annotations[v1beta1.AnnotationStopEarly] = "no hope"
	if err := w.client.Patch(t.Context(), asked, ctrlclient.MergeFrom(&trials[stop])); err != nil {
		t.Fatal(err)
	}
	select {
	case <-running.Done():
	case <-time.After(patience):
		t.Fatal("the trial is not told to stop")
	}
	var told *client.StopError
	if !errors.As(context.Cause(running), &told) || told.Why != "no hope" {
		t.Errorf("the cause is %v", context.Cause(running))
	}
	if err := trial.Prune(t.Context()); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Ask(t.Context(), w.resource(e)); !errors.Is(err, client.ErrDone) {
		t.Errorf("after the last trial: %v", err)
	}
}

// A point that a user queues is the next trial, and that of a trial can be tried again.
func TestAQueuedPointIsTheNextTrial(t *testing.T) {
	w := withAPI(t)
	c := w.caller()
	e := w.experiment("exp", outside(1, 9))
	w.create(e)
	next := func() *vernierv1.Trial {
		trial := w.suggest(c, &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), MaxWait: durationpb.New(20 * time.Second)})[0]
		if _, err := c.CompleteTrial(t.Context(), succeeded(trial, 1)); err != nil {
			t.Fatal(err)
		}
		return trial
	}
	next()
	name := e.Spec.Parameters[0].Name
	if _, err := c.CreateTrial(t.Context(), &vernierv1.CreateTrialRequest{Parent: w.resource(e), Parameters: map[string]*structpb.Value{name: structpb.NewNumberValue(1000)}}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a point outside of the space: %v", err)
	}
	point := map[string]*structpb.Value{name: structpb.NewNumberValue(0.0625)}
	if _, err := c.CreateTrial(t.Context(), &vernierv1.CreateTrialRequest{Parent: w.resource(e), Parameters: point}); err != nil {
		t.Fatal(err)
	}
	var first *vernierv1.Trial
	for range 3 { // one may have been made before
		if first = next(); first.GetParameters()[name].GetNumberValue() == 0.0625 {
			break
		}
	}
	if first.GetParameters()[name].GetNumberValue() != 0.0625 {
		t.Fatalf("the next trial is %v", first)
	}
	if _, err := c.RerunTrial(t.Context(), &vernierv1.RerunTrialRequest{Name: first.GetName()}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again := next(); again.GetParameters()[name].GetNumberValue() == 0.0625 {
			return
		}
	}
	t.Error("the point is not tried again")
}
