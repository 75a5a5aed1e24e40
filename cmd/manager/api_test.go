package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/utils/ptr"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/client"
)

// outside makes an experiment one whose trials run outside.
func outside(parallel, budget int32) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.Spec.TrialTemplate = nil
		e.Spec.ParallelTrialCount, e.Spec.MaxTrialCount = &parallel, &budget
	}
}

// caller is a client of the API of the manager that was started last, with the token
// of a single user.
func (w *world) caller() *client.Client {
	w.t.Helper()
	token, err := os.ReadFile(w.apiToken)
	if err != nil {
		w.t.Fatal(err)
	}
	return client.New(w.api, strings.TrimSpace(string(token)), nil)
}

// withAPI starts a world with a single user, and a manager.
func withAPI(t *testing.T) *world {
	w := newWorld(t, never)
	w.apiToken = filepath.Join(t.TempDir(), "api.token")
	w.start()
	return w
}

func (w *world) resource(e *v1beta1.Experiment) string {
	return "namespaces/" + e.Namespace + "/experiments/" + e.Name
}

func (w *world) suggest(c *client.Client, r *vernierv1.SuggestTrialsRequest) []*vernierv1.Trial {
	w.t.Helper()
	var answer *vernierv1.SuggestTrialsResponse
	w.eventually("trials are handed out", func() string {
		var err error
		answer, err = c.SuggestTrials(w.t.Context(), r)
		switch {
		case connect.CodeOf(err) == connect.CodeUnavailable: // a manager that has just started says so
			return err.Error()
		case err != nil:
			w.t.Fatal(err)
		}
		return ""
	})
	return answer.GetTrials()
}

func (w *world) complete(c *client.Client, r *vernierv1.CompleteTrialRequest) {
	w.t.Helper()
	w.eventually("a trial is completed", func() string {
		_, err := c.CompleteTrial(w.t.Context(), r)
		switch {
		case connect.CodeOf(err) == connect.CodeUnavailable: // a manager that has just started says so
			return err.Error()
		case err != nil:
			w.t.Fatal(err)
		}
		return ""
	})
}

func succeeded(t *vernierv1.Trial, loss float64) *vernierv1.CompleteTrialRequest {
	return &vernierv1.CompleteTrialRequest{Name: t.GetName(), Attempt: t.GetAttempt(), Outcome: &vernierv1.CompleteTrialRequest_Succeeded_{
		Succeeded: &vernierv1.CompleteTrialRequest_Succeeded{Values: map[string]float64{"loss": loss}}}}
}

func TestAnExperimentWithoutATemplateRunsOutside(t *testing.T) {
	w := withAPI(t)
	c := w.caller()
	spec, err := structpb.NewStruct(map[string]any{
		"parameters": []any{
			map[string]any{"name": "lr", "parameterType": "double", "feasibleSpace": map[string]any{"min": "0.001", "max": "0.1"}},
			map[string]any{"name": "layers", "parameterType": "int", "feasibleSpace": map[string]any{"min": "1", "max": "4"}},
			map[string]any{"name": "optimizer", "parameterType": "categorical", "feasibleSpace": map[string]any{"list": []any{"1", "2"}}},
		},
		"objective": map[string]any{"type": "minimize", "objectiveMetricName": "loss"},
		"algorithm": map[string]any{"algorithmName": "random"}, "seed": 7.0, "parallelTrialCount": 2.0, "maxTrialCount": 4.0,
	})
	if err != nil {
		t.Fatal(err)
	}
	parent := "namespaces/" + w.namespace + "/experiments/exp"
	create := &vernierv1.CreateExperimentRequest{Experiment: &vernierv1.Experiment{Name: parent, Spec: spec}}
	for range 2 { // again is no error
		made, err := c.CreateExperiment(t.Context(), create)
		if err != nil || made.GetName() != parent || made.GetState() != vernierv1.Experiment_ACTIVE {
			t.Fatalf("%v, %v", made, err)
		}
	}
	ask := &vernierv1.SuggestTrialsRequest{Parent: parent, Count: 3, Worker: "me", MaxWait: durationpb.New(20 * time.Second)}
	first := w.suggest(c, ask)
	if len(first) != 2 {
		t.Fatalf("%d trials were handed out, want as many as may run at once", len(first))
	}
	p := first[0].GetParameters()
	if lr := p["lr"].GetNumberValue(); lr < 0.001 || lr > 0.1 || p["layers"].GetNumberValue() < 1 || p["optimizer"].GetStringValue() == "" {
		t.Errorf("the parameters are %v", p)
	}
	e := &v1beta1.Experiment{}
	e.Namespace, e.Name = w.namespace, "exp"
	w.eventually("the trials are seen to run", func() string {
		var states []string
		for _, tr := range w.trialsOf(e) {
			states = append(states, tr.Name+" "+string(tr.State()))
		}
		return cmp.Diff([]string{"exp-0000 Running", "exp-0001 Running"}, states)
	})
	for i, m := range []float64{0.9, 0.4, 0.6} {
		answer, err := c.ReportTrial(t.Context(), &vernierv1.ReportTrialRequest{Name: first[0].GetName(), Attempt: 1,
			Measurements: []*vernierv1.Measurement{{Step: int64(i), Values: map[string]float64{"loss": m}}}})
		if err != nil || answer.GetDirective() != vernierv1.ReportTrialResponse_CONTINUE {
			t.Fatalf("%v, %v", answer, err)
		}
	}
	// The reported values count, by the strategy: the least.
	reported, err := c.CompleteTrial(t.Context(), &vernierv1.CompleteTrialRequest{Name: first[0].GetName(), Attempt: 1,
		Outcome: &vernierv1.CompleteTrialRequest_Succeeded_{Succeeded: &vernierv1.CompleteTrialRequest_Succeeded{}}})
	if err != nil || reported.GetState() != vernierv1.Trial_SUCCEEDED || reported.GetValues()["loss"] != 0.4 {
		t.Fatalf("%v, %v", reported, err)
	}
	infeasible := &vernierv1.CompleteTrialRequest{Name: first[1].GetName(), Attempt: 1,
		Outcome: &vernierv1.CompleteTrialRequest_Infeasible_{Infeasible: &vernierv1.CompleteTrialRequest_Infeasible{Reason: "out of memory"}}}
	if got, err := c.CompleteTrial(t.Context(), infeasible); err != nil || got.GetState() != vernierv1.Trial_INFEASIBLE || !strings.Contains(got.GetMessage(), "out of memory") {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range 2 {
		for _, tr := range w.suggest(c, &vernierv1.SuggestTrialsRequest{Parent: parent, MaxWait: ask.GetMaxWait()}) {
			if got, err := c.CompleteTrial(t.Context(), succeeded(tr, 0.2+float64(i))); err != nil || got.GetNumber() != int32(2+i) {
				t.Fatalf("%v, %v", got, err)
			}
		}
	}
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	answer, err := c.SuggestTrials(t.Context(), ask)
	if err != nil || len(answer.GetTrials()) > 0 || answer.GetState() != vernierv1.Experiment_SUCCEEDED || answer.GetMessage() == "" {
		t.Errorf("after the end: %v, %v", answer, err)
	}
	best, err := c.ListOptimalTrials(t.Context(), &vernierv1.ListOptimalTrialsRequest{Parent: parent})
	if err != nil || len(best.GetTrials()) != 1 || best.GetTrials()[0].GetNumber() != 2 {
		t.Errorf("the best: %v, %v", best, err)
	}
	got, err := c.GetExperiment(t.Context(), &vernierv1.GetExperimentRequest{Name: parent})
	if err != nil || got.GetState() != vernierv1.Experiment_SUCCEEDED || got.GetTrials() != 4 || got.GetTrialsSucceeded() != 3 {
		t.Errorf("%v, %v", got, err)
	}
	var numbers []int32
	for token := ""; ; {
		page, err := c.ListTrials(t.Context(), &vernierv1.ListTrialsRequest{Parent: parent, PageSize: 3, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range page.GetTrials() {
			numbers = append(numbers, tr.GetNumber())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if diff := cmp.Diff([]int32{0, 1, 2, 3}, numbers); diff != "" {
		t.Error(diff)
	}
}

func TestATrialWhoseWorkerIsLostIsHandedOutAgain(t *testing.T) {
	w := withAPI(t)
	c := w.caller()
	e := w.experiment("exp", outside(1, 1))
	w.create(e)
	ask := func(worker string) *vernierv1.Trial {
		t.Helper()
		got := w.suggest(c, &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), Worker: worker,
			Lease: durationpb.New(time.Second), MaxWait: durationpb.New(30 * time.Second)})
		if len(got) != 1 {
			t.Fatalf("%d trials", len(got))
		}
		return got[0]
	}
	a := ask("a")
	b := ask("b") // once the lease of a has expired
	if b.GetName() != a.GetName() || a.GetAttempt() != 1 || b.GetAttempt() != 2 {
		t.Fatalf("%s attempt %d, then %s attempt %d", a.GetName(), a.GetAttempt(), b.GetName(), b.GetAttempt())
	}
	_, err := c.ReportTrial(t.Context(), &vernierv1.ReportTrialRequest{Name: a.GetName(), Attempt: 1})
	if client.Reason(err) != "STALE_ATTEMPT" || connect.CodeOf(err) != connect.CodeAborted {
		t.Errorf("a report of the lost worker: %v", err)
	}
	if _, err = c.CompleteTrial(t.Context(), succeeded(a, 1)); client.Reason(err) != "STALE_ATTEMPT" {
		t.Errorf("a result of the lost worker: %v", err)
	}
	if _, err := c.ReleaseTrial(t.Context(), &vernierv1.ReleaseTrialRequest{Name: b.GetName(), Attempt: 2}); err != nil {
		t.Fatal(err)
	}
	d := ask("d")
	if d.GetAttempt() != 3 {
		t.Fatalf("attempt %d of the trial that was handed back", d.GetAttempt())
	}
	if _, err = c.CompleteTrial(t.Context(), succeeded(b, 1)); client.Reason(err) != "STALE_ATTEMPT" {
		t.Errorf("a result of who handed the trial back: %v", err)
	}
	for range 2 { // again is no error
		if _, err := c.CompleteTrial(t.Context(), succeeded(d, 0.5)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = c.CompleteTrial(t.Context(), succeeded(d, 0.25)); client.Reason(err) != "ALREADY_COMPLETED" {
		t.Errorf("another result: %v", err)
	}
	answer, err := c.ReportTrial(t.Context(), &vernierv1.ReportTrialRequest{Name: d.GetName(), Attempt: 3})
	if err != nil || answer.GetDirective() != vernierv1.ReportTrialResponse_STOP {
		t.Errorf("a late report: %v, %v", answer, err)
	}
	w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
}

func TestALateReportKeepsATrialThatNoOtherTook(t *testing.T) {
	w := withAPI(t)
	c := w.caller()
	e := w.experiment("exp", outside(1, 1))
	w.create(e)
	got := w.suggest(c, &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), Lease: durationpb.New(time.Second), MaxWait: durationpb.New(20 * time.Second)})
	w.eventually("the worker is seen to be lost", func() string {
		tr := w.trialsOf(e)[0]
		if c := tr.LastCondition(); c == nil || c.Reason != v1beta1.ReasonTrialLost || tr.State() != v1beta1.TrialCreated {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	report := &vernierv1.ReportTrialRequest{Name: got[0].GetName(), Attempt: 1}
	answer, err := c.ReportTrial(t.Context(), report)
	if err != nil || answer.GetDirective() != vernierv1.ReportTrialResponse_CONTINUE || !answer.GetLeaseExpireTime().AsTime().After(time.Now()) {
		t.Errorf("%v, %v", answer, err)
	}
	if _, err := c.CompleteTrial(t.Context(), succeeded(got[0], 1)); err != nil {
		t.Error(err)
	}
}

func TestARequestThatIsSentAgainGetsTheSameTrials(t *testing.T) {
	w := withAPI(t)
	e := w.experiment("exp", outside(8, 8))
	w.create(e)
	names := func(got []*vernierv1.Trial) (out []string) {
		for _, t := range got {
			out = append(out, fmt.Sprint(t.GetNumber(), " ", t.GetAttempt()))
		}
		return out
	}
	ask := &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), Count: 3, RequestId: "one", MaxWait: durationpb.New(20 * time.Second)}
	first := w.suggest(w.caller(), ask)
	other := w.suggest(w.caller(), &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), Count: 2, RequestId: "two"})
	w.start() // another manager beside the first
	again := w.suggest(w.caller(), ask)
	if diff := cmp.Diff([]string{"0 1", "1 1", "2 1"}, names(first)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"3 1", "4 1"}, names(other)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(names(first), names(again)); diff != "" {
		t.Error("the same request, at another manager:", diff)
	}
}

func TestTheRunningTrialsOfAnExperimentThatEndsAreStopped(t *testing.T) {
	w := withAPI(t)
	c := w.caller()
	e := w.experiment("exp", outside(2, 10), func(e *v1beta1.Experiment) { e.Spec.Objective.Goal = ptr.To(0.5) })
	w.create(e)
	got := w.suggest(c, &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), Count: 2, Lease: durationpb.New(2 * time.Second), MaxWait: durationpb.New(20 * time.Second)})
	if _, err := c.CompleteTrial(t.Context(), succeeded(got[0], 0.1)); err != nil {
		t.Fatal(err)
	}
	w.eventually("the other trial is told to stop", func() string {
		answer, err := c.ReportTrial(t.Context(), &vernierv1.ReportTrialRequest{Name: got[1].GetName(), Attempt: 1})
		if err != nil || answer.GetDirective() != vernierv1.ReportTrialResponse_STOP || !strings.Contains(answer.GetWhy(), "the experiment has ended") {
			return fmt.Sprint(answer, err)
		}
		return ""
	})
	w.ends(e, v1beta1.ReasonExperimentGoalReached)
	w.eventually("a trial whose worker does not answer is killed", func() string {
		if tr := w.trialsOf(e)[1]; !tr.IsKilled() {
			return string(tr.State())
		}
		return ""
	})
}

func TestAFiniteSpaceIsTriedOnce(t *testing.T) {
	w := withAPI(t)
	c := w.caller()
	e := w.experiment("exp", outside(5, 100), func(e *v1beta1.Experiment) {
		e.Spec.Algorithm.AlgorithmName = "grid"
		e.Spec.Parameters[0].FeasibleSpace = v1beta1.FeasibleSpace{Min: "0.01", Max: "0.03", Step: "0.01"}
	})
	w.create(e)
	seen := map[float64]int{}
	for done := false; !done; {
		answer, err := c.SuggestTrials(t.Context(), &vernierv1.SuggestTrialsRequest{Parent: w.resource(e), Count: 2, MaxWait: durationpb.New(20 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		done = answer.GetExhausted() || answer.GetState() == vernierv1.Experiment_SUCCEEDED
		for _, tr := range answer.GetTrials() {
			seen[tr.GetParameters()["lr"].GetNumberValue()]++
			if _, err := c.CompleteTrial(t.Context(), succeeded(tr, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(map[float64]int{0.01: 1, 0.02: 1, 0.03: 1}, seen); diff != "" {
		t.Error(diff)
	}
	w.ends(e, v1beta1.ReasonExperimentSuggestionEndReached)
}
