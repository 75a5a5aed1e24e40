package play

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

func kernelTraining(t *testing.T) *problem.Problem {
	t.Helper()
	i := slices.IndexFunc(problem.Trainings(), func(p *problem.Problem) bool { return p.Name == "kernel-wine-nll" })
	if i < 0 {
		t.Fatal("there is no kernel-wine-nll")
	}
	return problem.Trainings()[i]
}

func TestTrainingsAreEvaluatedInAnotherProcess(t *testing.T) {
	p, l := kernelTraining(t), &Learner{Process: *fake("plays")}
	defer func() { _ = l.Close() }()
	evaluate := l.Evaluator(p, p.Space())
	for c, want := range map[string]problem.Outcome{"20": {Values: []float64{20}}, "1000": {Failed: true}} {
		point, ok := p.Space().Parse([]suggest.Assignment{
			{Name: "c", Value: c}, {Name: "kernel", Value: "linear"}, {Name: "scale", Value: "none"}, {Name: "tol", Value: "0.01"},
		})
		if !ok {
			t.Fatal("the point is not in the space")
		}
		got, err := evaluate(t.Context(), 0, point)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("c=%s: -want +got:\n%s", c, diff)
		}
	}
}

func TestATrainingThatEndsItsProgramBreaksTheGameOff(t *testing.T) {
	p, l := kernelTraining(t), &Learner{Process: Process{Command: []string{"false"}}}
	ours, err := NewOurs("random")
	if err != nil {
		t.Fatal(err)
	}
	run := Run{Problem: p, Regime: regime(t, Sequential), Budget: 2, Evaluate: l.Evaluator(p, p.Space())}
	if _, err := Play(t.Context(), ours, run); err == nil {
		t.Error("the game has no error")
	}
}

// curveTraining is a training of three steps.
func curveTraining(t *testing.T, steps int) *problem.Problem {
	p := *kernelTraining(t)
	p.Suite, p.Curve = problem.LiveCurves, &problem.Curve{Steps: steps}
	return &p
}

func TestTheCurveOfATraining(t *testing.T) {
	p, l := curveTraining(t, 3), &Learner{Process: *fake("plays")}
	defer func() { _ = l.Close() }()
	for c, want := range map[string]problem.Outcome{
		"20": {Values: []float64{1}, Curve: []float64{3, 2, 1}}, "1000": {Failed: true, Curve: []float64{3, 2, math.NaN()}},
	} {
		point, ok := p.Space().Parse([]suggest.Assignment{
			{Name: "c", Value: c}, {Name: "kernel", Value: "linear"}, {Name: "scale", Value: "none"}, {Name: "tol", Value: "0.01"},
		})
		if !ok {
			t.Fatal("the point is not in the space")
		}
		got, err := l.Evaluator(p, p.Space())(t.Context(), 0, point)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("c=%s: -want +got:\n%s", c, diff)
		}
		if _, err := l.Evaluator(curveTraining(t, 5), p.Space())(t.Context(), 0, point); err == nil {
			t.Errorf("c=%s: a curve of 3 steps is taken for one of 5", c)
		}
	}
}

func TestAGameOfTrainingsWithCurves(t *testing.T) {
	p, l := curveTraining(t, 3), &Learner{Process: *fake("plays")}
	defer func() { _ = l.Close() }()
	ours, err := NewOurs("random")
	if err != nil {
		t.Fatal(err)
	}
	played, err := Play(t.Context(), ours, Run{Problem: p, Regime: regime(t, Fidelity8), Budget: 4, Evaluate: l.Evaluator(p, p.Space()), Train: l.Trainer(p, p.Space())})
	if err != nil {
		t.Fatal(err)
	}
	// One step has been paid for, then one of each of eight trainings, and what is recommended
	// is worth what its curve has come to.
	if diff := cmp.Diff(Path{{1.0 / 3, 3}, {3, 2}}, played.Path); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
