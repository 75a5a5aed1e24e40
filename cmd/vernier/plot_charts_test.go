package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/cmd/vernier/plot"
)

func aView(e *v1beta1.Experiment, values ...string) experimentView {
	var trials []v1beta1.Trial
	for i, value := range values {
		state := v1beta1.TrialSucceeded
		if value == "" {
			state = v1beta1.TrialFailed
		}
		trials = append(trials, aTrial(i, state, value))
	}
	return newExperimentView(e, trials)
}

func TestHistoryFollowsTheBest(t *testing.T) {
	values := []string{"3", "", "NaN", "1", "2", "0.5"}
	tests := map[v1beta1.ObjectiveType]struct{ x, y []float64 }{
		v1beta1.ObjectiveTypeMinimize: {[]float64{0, 3, 3, 4, 5, 5}, []float64{3, 3, 1, 1, 1, 0.5}},
		v1beta1.ObjectiveTypeMaximize: {[]float64{0, 3, 4, 5}, []float64{3, 3, 3, 3}},
	}
	for kind, want := range tests {
		t.Run(string(kind), func(t *testing.T) {
			e := anExperiment()
			e.Spec.Objective.Type = kind
			charts, err := historyCharts(t.Context(), &plotOptions{}, nil, aView(e, values...))
			if err != nil {
				t.Fatal(err)
			}
			every, best := charts[0].Series[0], charts[0].Series[1]
			if diff := cmp.Diff([]float64{0, 3, 4, 5}, every.X); diff != "" {
				t.Errorf("trials (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.x, best.X) + cmp.Diff(want.y, best.Y); diff != "" {
				t.Errorf("best so far (-want +got):\n%s", diff)
			}
		})
	}
}

// Short trials are shown as such in the history, whose best may be one of them, and left out
// where values are compared.
func TestChartsTellShortTrials(t *testing.T) {
	e := anExperiment()
	e.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "auto", AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: "epochs"}}}
	v := aView(e, "1", "4", "3", "2", "5")
	for i, resource := range []string{"3", "9", "27", "27", ""} {
		v.Trials[i].Object.Annotations = map[string]string{v1beta1.AnnotationResource: resource}
	}
	charts, err := historyCharts(t.Context(), &plotOptions{}, nil, v)
	if err != nil {
		t.Fatal(err)
	}
	every, best, short := charts[0].Series[0], charts[0].Series[1], charts[0].Series[2]
	if diff := cmp.Diff([]float64{2, 3, 4}, every.X) + cmp.Diff([]float64{0, 1}, short.X) + cmp.Diff([]float64{1, 1, 1, 1, 1}, best.Y); diff != "" || !short.Faint {
		t.Errorf("whole, short, best so far (-want +got):\n%s", diff)
	}
}

// withEpochs is an experiment whose trials say with epochs how long they train.
func withEpochs(epochs ...string) experimentView {
	e := anExperiment()
	e.Spec.Algorithm = &v1beta1.AlgorithmSpec{AlgorithmName: "auto", AlgorithmSettings: []v1beta1.AlgorithmSetting{{Name: "resource_name", Value: "epochs"}}}
	e.Spec.Parameters = []v1beta1.ParameterSpec{
		{Name: "lr", ParameterType: v1beta1.ParameterTypeDouble, FeasibleSpace: v1beta1.FeasibleSpace{Min: "0", Max: "1"}},
		{Name: "epochs", ParameterType: v1beta1.ParameterTypeInt, FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "27"}},
	}
	var trials []v1beta1.Trial
	for i, n := range epochs {
		trial := aTrial(i, v1beta1.TrialSucceeded, []string{"1", "4", "3", "2"}[i%4])
		trial.Annotations = map[string]string{v1beta1.AnnotationResource: n}
		trial.Status.Conditions[1].Status = corev1.ConditionTrue
		trial.Spec.ParameterAssignments = append(trial.Spec.ParameterAssignments, v1beta1.ParameterAssignment{Name: "epochs", Value: n})
		trials = append(trials, trial)
	}
	return newExperimentView(e, trials)
}

// Importance is of the resource that most points had, the others of the largest with enough.
func TestChartsCompareTrialsOfOneResource(t *testing.T) {
	v := withEpochs(slices.Repeat([]string{"3", "3", "3", "27"}, 10)...)
	v.Trials[0].Object.Annotations = nil // queued by a user
	for name, test := range map[string]struct {
		charts func(context.Context, *plotOptions, *session, experimentView) ([]plot.Chart, error)
		trials int
		note   string
	}{
		"slice":      {sliceCharts, 10, "of 10 trials with epochs=27; 30 others are left out"},
		"parallel":   {parallelCharts, 10, "of 10 trials with epochs=27; 30 others are left out"},
		"importance": {importanceCharts, 0, "of 30 trials with epochs=3; 10 others are left out"},
	} {
		made, err := test.charts(t.Context(), &plotOptions{}, nil, v)
		if err != nil {
			t.Fatal(err)
		}
		drawn := 0
		for _, s := range made[0].Series {
			drawn += len(s.X)
			if name == "parallel" {
				drawn += 1 - len(s.X) // a line
			}
		}
		params := map[string]int{"slice": len(made), "parallel": len(made[0].X.Ticks) - 1, "importance": len(made[0].Bars) - 1}[name]
		if params != 1 {
			t.Errorf("%s: %d parameters, want lr only", name, params)
		}
		if diff := cmp.Diff(test.note, made[0].Note); diff != "" || drawn != test.trials {
			t.Errorf("%s: %d trials are drawn, want %d; its note (-want +got):\n%s", name, drawn, test.trials, diff)
		}
	}
}

// The resource is left out as well where no trial is.
func TestChartsLeaveOutTheResource(t *testing.T) {
	v := withEpochs(slices.Repeat([]string{"3"}, 8)...)
	each, err1 := sliceCharts(t.Context(), &plotOptions{}, nil, v)
	parallel, err2 := parallelCharts(t.Context(), &plotOptions{}, nil, v)
	importance, err3 := importanceCharts(t.Context(), &plotOptions{}, nil, v)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if len(each) != 1 || len(parallel[0].X.Ticks) != 2 || len(importance[0].Bars) != 2 || each[0].Note+parallel[0].Note+importance[0].Note != "" {
		t.Errorf("slices %+v, parallel %+v, importance %+v; want lr alone", each, parallel[0].X, importance[0])
	}
}

// A point that is repeated counts once for which resource is compared.
func TestChartsCompareTheResourceOfMostPoints(t *testing.T) {
	v := withEpochs(append(slices.Repeat([]string{"27"}, 10), slices.Repeat([]string{"3"}, 8)...)...)
	for i := range 10 {
		v.Trials[i].Params = v.Trials[0].Params
	}
	charts, err := sliceCharts(t.Context(), &plotOptions{}, nil, v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("of 8 trials with epochs=3; 10 others are left out", charts[0].Note); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParallelShowsTheBestInFront(t *testing.T) {
	charts, err := parallelCharts(t.Context(), &plotOptions{top: 1}, nil, aView(anExperiment(), "3", "1", "2"))
	if err != nil {
		t.Fatal(err)
	}
	first := charts[0].Series[0]
	if first.Name != "1" || first.Faint || !charts[0].Series[1].Faint {
		t.Errorf("in front: %+v", first)
	}
	if diff := cmp.Diff([]float64{0.5, 0}, first.Y); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChartsThatCannotBeDrawnSayWhy(t *testing.T) {
	view := aView(anExperiment(), "3", "1")
	if _, err := historyCharts(t.Context(), &plotOptions{metric: "f1"}, nil, view); exitCode(err) != exitNotFound {
		t.Errorf("a metric without reports: %v", err)
	}
	alone := withEpochs("3")
	alone.Experiment.Spec.Parameters = alone.Experiment.Spec.Parameters[1:]
	if _, err := sliceCharts(t.Context(), &plotOptions{}, nil, alone); exitCode(err) != exitNotFound {
		t.Errorf("slices of the resource alone: %v", err)
	}
	if _, err := paretoCharts(t.Context(), &plotOptions{}, nil, view); exitCode(err) != exitUsage {
		t.Errorf("a front of one objective: %v", err)
	}
	for _, args := range [][]string{{"plot"}, {"plot", "x", "pie"}, {"plot", "x", "-o", "x.pdf"}, {"plot", "x", "--size", "5x5"}} {
		root := newRootCommand(false)
		root.SilenceErrors, root.SilenceUsage = true, true
		root.SetArgs(append([]string{"--home", filepath.Join(t.TempDir(), "home")}, args...))
		root.SetOut(&bytes.Buffer{})
		if err := root.ExecuteContext(t.Context()); exitCode(err) != exitUsage {
			t.Errorf("%v: code %d (%v)", args, exitCode(err), err)
		}
	}
}
