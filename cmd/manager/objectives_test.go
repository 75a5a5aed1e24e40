package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// lossAndSize is minimized in both; memory has a bound.
func lossAndSize(e *v1beta1.Experiment) {
	e.Spec.Objective = nil
	e.Spec.Algorithm.AlgorithmName = "nsga2"
	e.Spec.Objectives = []v1beta1.ObjectiveMetric{
		{ObjectiveMetricName: "loss", Type: v1beta1.ObjectiveTypeMinimize},
		{ObjectiveMetricName: "size", Type: v1beta1.ObjectiveTypeMinimize},
	}
	e.Spec.Constraints = []v1beta1.MetricConstraint{{MetricName: "memory", Max: ptr.To(16.0)}}
}

func TestSeveralObjectives(t *testing.T) {
	results := map[int]ending{
		0: {points: []float64{9, 3}, beside: map[string]float64{"size": 1, "memory": 1}},
		1: {points: []float64{9, 1}, beside: map[string]float64{"size": 3, "memory": 16}},
		2: {points: []float64{9, 4}, beside: map[string]float64{"size": 4, "memory": 1}},  // beaten
		3: {points: []float64{9, 0}, beside: map[string]float64{"size": 0, "memory": 17}}, // over the bound
		4: {points: []float64{9, 0}, beside: map[string]float64{"memory": 1}},             // without a size
		5: {points: []float64{9, 2}, beside: map[string]float64{"size": 2, "memory": 1}},
	}
	w := newWorld(t, func(name string) ending {
		var n int
		_, _ = fmt.Sscanf(name[strings.LastIndex(name, "-")+1:], "%d", &n)
		return results[n]
	})
	w.start()
	e := w.experiment("exp", lossAndSize)
	w.create(e)
	got := w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached)
	if diff := cmp.Diff([]string{"exp-0000", "exp-0001", "exp-0005"}, got.Status.ParetoTrialList); diff != "" {
		t.Errorf("front (-want +got)\n%s", diff)
	}
	if best := got.Status.CurrentOptimalTrial.BestTrialName; best != "exp-0001" {
		t.Errorf("best: %s", best)
	}
	if diff := cmp.Diff([]string{"exp-0004"}, got.Status.MetricsUnavailableTrialList); diff != "" {
		t.Errorf("without metrics (-want +got)\n%s", diff)
	}
	for _, tr := range w.trialsOf(e) {
		if tr.Name == "exp-0004" && !strings.Contains(tr.Status.Conditions[len(tr.Status.Conditions)-1].Message, `"size"`) {
			t.Errorf("%+v does not name the metric that is missing", tr.Status.Conditions)
		}
	}
}

func TestWarmStartWaitsForItsExperiment(t *testing.T) {
	w := newWorld(t, byNumber(1))
	w.start()
	second := w.experiment("second", func(e *v1beta1.Experiment) {
		e.Spec.Algorithm.AlgorithmName = "tpe"
		e.Spec.WarmStartFrom = []v1beta1.WarmStart{{Experiment: "first"}}
	})
	w.create(second)
	w.eventually("the experiment says what it waits for", func() string {
		for _, c := range w.read(second).Status.Conditions {
			if strings.Contains(c.Message, `experiment "first" of spec.warmStartFrom[0]`) {
				return ""
			}
		}
		return fmt.Sprintf("%+v", w.read(second).Status.Conditions)
	})
	first := w.experiment("first")
	w.create(first)
	w.ends(first, v1beta1.ReasonExperimentMaxTrialsReached)
	w.ends(second, v1beta1.ReasonExperimentMaxTrialsReached)

	third := w.experiment("third", func(e *v1beta1.Experiment) {
		e.Spec.Objective.ObjectiveMetricName = "accuracy"
		e.Spec.Algorithm.AlgorithmName = "tpe"
		e.Spec.WarmStartFrom = []v1beta1.WarmStart{{Experiment: "first"}}
	})
	w.create(third)
	failed := w.ends(third, v1beta1.ReasonExperimentFailed)
	if c := failed.Status.Conditions[len(failed.Status.Conditions)-1]; !strings.Contains(c.Message, "none of its 6 trials measured the objectives of this one (accuracy)") || failed.Status.Trials != 0 {
		t.Errorf("%d trials, %+v", failed.Status.Trials, c)
	}
}
