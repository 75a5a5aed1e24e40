package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestDefaultsOfSeveralObjectives(t *testing.T) {
	const several = "objectives: [{objectiveMetricName: loss, type: minimize}, {objectiveMetricName: speed, type: maximize}]\n"
	tests := map[string]struct{ given, want string }{
		"the first is the objective, the others are collected beside it": {several,
			"{type: minimize, objectiveMetricName: loss, additionalMetricNames: [speed], metricStrategies: [{name: speed, value: best-at-step}, {name: loss, value: min}]}"},
		"what the objective says stays": {several + "objective: {additionalMetricNames: [a, speed], metricStrategies: [{name: speed, value: latest}]}",
			"{type: minimize, objectiveMetricName: loss, additionalMetricNames: [a, speed], metricStrategies: [{name: speed, value: latest}, {name: loss, value: min}, {name: a, value: min}]}"},
		"metrics with bounds are collected too": {"objective: {type: maximize, objectiveMetricName: acc}\nconstraints: [{metricName: memory, max: 16}, {metricName: acc, min: 0.5}]",
			"{type: maximize, objectiveMetricName: acc, additionalMetricNames: [memory], metricStrategies: [{name: memory, value: best-at-step}, {name: acc, value: max}]}"},
		"an objective with a bound has one strategy": {several + "constraints: [{metricName: speed, min: 2}]",
			"{type: minimize, objectiveMetricName: loss, additionalMetricNames: [speed], metricStrategies: [{name: speed, value: best-at-step}, {name: loss, value: min}]}"},
		"what disagrees is left for validation": {several + "objective: {type: maximize, objectiveMetricName: other}",
			"{type: maximize, objectiveMetricName: other, additionalMetricNames: [loss, speed], metricStrategies: [{name: loss, value: best-at-step}, {name: speed, value: best-at-step}, {name: other, value: max}]}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := spec(t, tc.given)
			v1beta1.SetDefaults(e)
			want := spec(t, "objective: "+tc.want)
			if diff := cmp.Diff(want.Spec.Objective, e.Spec.Objective); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			again := e.DeepCopy()
			v1beta1.SetDefaults(again)
			if diff := cmp.Diff(e, again); diff != "" {
				t.Errorf("a second call changes something\n%s", diff)
			}
		})
	}
}

func TestAllObjectives(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"none":    {"{}", "{}"},
		"one":     {"objective: {type: maximize, objectiveMetricName: acc, goal: 0.9}", "objectives: [{type: maximize, objectiveMetricName: acc, goal: 0.9}]"},
		"several": {"objectives: [{objectiveMetricName: a, type: minimize, goal: 1}, {objectiveMetricName: b, type: maximize}]\nobjective: {objectiveMetricName: a}", "objectives: [{objectiveMetricName: a, type: minimize, goal: 1}, {objectiveMetricName: b, type: maximize}]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(spec(t, tc.want).Spec.Objectives, spec(t, tc.given).Spec.AllObjectives()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
