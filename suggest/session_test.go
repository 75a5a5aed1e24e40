package suggest_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// levels proposes the values of a space with one parameter, one after the other.
type levels struct{}

func (levels) Suggest(_ context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	var out []suggest.Proposal
	for i := s.NextNumber(); i < s.NextNumber()+n; i++ {
		out = append(out, suggest.Proposal{Point: suggest.Point{s.Space.At(0).At(int64(i))}, Resource: 3})
	}
	return out, nil
}

func session(t *testing.T, trials int) *suggest.Session {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{suggest.Integer("n", 0, 99)})
	if err != nil {
		t.Fatal(err)
	}
	most := 10.0
	s := &suggest.Session{Algorithm: levels{}, Study: suggest.Study{
		Space:       space,
		Objectives:  []suggest.Objective{{Name: "accuracy", Direction: suggest.Maximize}},
		Constraints: []suggest.Constraint{{Name: "latency", Max: &most}},
	}}
	asked, err := s.Ask(t.Context(), trials)
	if err != nil || len(asked) != trials {
		t.Fatalf("%d trials, %v", len(asked), err)
	}
	for i, a := range asked {
		if a.Number != i || a.Value("n").Float() != float64(i) || s.Study.Trials[i].Resource != 3 {
			t.Fatalf("trial %d is %+v", i, a)
		}
	}
	return s
}

func TestBestMeetsTheConstraintsAndIsFinite(t *testing.T) {
	s := session(t, 7)
	if s.Best() != nil {
		t.Error("there is a best before any result")
	}
	err := s.Tell(
		suggest.Result{Number: 0, Values: []float64{0.5}, Constraints: []float64{10}},
		suggest.Result{Number: 1, Values: []float64{0.9}, Constraints: []float64{11}},
		suggest.Result{Number: 2, Values: []float64{0.7}, Constraints: []float64{1}},
		suggest.Result{Number: 3, Values: []float64{0.7}, Constraints: []float64{0}},
		suggest.Result{Number: 4, Values: []float64{math.Inf(1)}, Constraints: []float64{1}},
		suggest.Result{Number: 5, Values: []float64{math.NaN()}, Constraints: []float64{1}},
		suggest.Result{Number: 6, Values: []float64{0.8}}, // latency was not measured
	)
	if err != nil {
		t.Fatal(err)
	}
	if best := s.Best(); best == nil || best.Number != 2 {
		t.Errorf("the best is %+v, want trial 2", best)
	}
}

func TestTellIsAllOrNothing(t *testing.T) {
	s := session(t, 2)
	ok := suggest.Result{Number: 0, Values: []float64{1}}
	cases := map[string]struct {
		with suggest.Result
		want string
	}{
		"an unknown trial":                 {suggest.Result{Number: 5, Values: []float64{1}}, "no such trial: 5"},
		"a success without a value":        {suggest.Result{Number: 1}, "trial 1 has 0 values; it must have 1"},
		"more values than objectives":      {suggest.Result{Number: 1, Values: []float64{1, 2}}, "trial 1 has 2 values"},
		"an unknown trial that has failed": {suggest.Result{Number: 5, State: suggest.Failed}, "no such trial: 5"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := s.Tell(ok, c.with); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if s.Study.Trials[0].State != suggest.Pending {
				t.Error("the other result was taken")
			}
		})
	}
}

func TestReportKeepsACurveInOrderOfSteps(t *testing.T) {
	s := session(t, 1)
	var before *suggest.Trial
	for _, m := range []suggest.Sample{{Step: 1, Value: 1}, {Step: 5, Value: 5}, {Step: 3, Value: 2}, {Step: 3, Value: 3}} {
		before = s.Study.Trials[0]
		if _, _, err := s.Report(0, m); err != nil {
			t.Fatal(err)
		}
	}
	want := []suggest.Sample{{Step: 1, Value: 1}, {Step: 3, Value: 3}, {Step: 5, Value: 5}}
	if diff := cmp.Diff(want, s.Study.Trials[0].Curve); diff != "" {
		t.Error(diff)
	}
	if before.Curve[1].Value != 2 {
		t.Error("a trial that was read before the last report has changed")
	}
	if err := s.Tell(suggest.Result{Number: 0, State: suggest.Pruned}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{5}, s.Study.Trials[0].Values); diff != "" {
		t.Error("a pruned trial has the value of its last step:", diff)
	}
	if _, _, err := s.Report(0, suggest.Sample{Step: 6}); err == nil {
		t.Error("a trial that has ended was reported")
	}
}

func TestTypedParametersAreThoseThatUsersWrite(t *testing.T) {
	got := []suggest.ParameterSpec{
		suggest.Float("lr", 1e-5, 0.1, suggest.Log),
		suggest.Float("momentum", 0, 0.9, suggest.Step(0.1)),
		suggest.Integer("layers", 1, 4),
		suggest.Choice("optimizer", "sgd", "adam"),
	}
	want := []suggest.ParameterSpec{
		{Name: "lr", Kind: suggest.Double, Min: "1e-05", Max: "0.1", Distribution: suggest.LogUniform},
		{Name: "momentum", Kind: suggest.Double, Min: "0", Max: "0.9", Step: "0.1"},
		{Name: "layers", Kind: suggest.Int, Min: "1", Max: "4"},
		{Name: "optimizer", Kind: suggest.Categorical, List: []string{"sgd", "adam"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := suggest.NewSpace(got); err != nil {
		t.Error(err)
	}
}

// A study that two sessions go on from is neither one's own.
func TestSessionsThatGoOnFromOneStudyKeepTheirOwnCurves(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{suggest.Float("x", 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	one := suggest.Session{Study: suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}}}
	one.Study.Put(&suggest.Trial{Point: space.Decode([]float64{0.5})})
	report := func(s *suggest.Session, step int64, value float64) {
		if _, _, err := s.Report(0, suggest.Sample{Step: step, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	for step := range int64(3) {
		report(&one, step, 1)
	}
	other := suggest.Session{Study: one.Study}
	report(&one, 3, 2)
	report(&other, 3, 7)
	if got := one.Study.Trial(0).Curve[3].Value; got != 2 {
		t.Errorf("the first session reported 2 and has %v", got)
	}
}
