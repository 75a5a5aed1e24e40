package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// anExperiment minimizes loss over lr, 24 trials.
func anExperiment() *v1beta1.Experiment {
	limit := int32(24)
	start := metav1.NewTime(noon)
	return &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "charlm"},
		Spec: v1beta1.ExperimentSpec{
			MaxTrialCount: &limit,
			Algorithm:     &v1beta1.AlgorithmSpec{AlgorithmName: "sobol"},
			Objective: &v1beta1.ObjectiveSpec{
				Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss",
				MetricStrategies: []v1beta1.MetricStrategy{{Name: "loss", Value: v1beta1.ExtractByMin}, {Name: "acc", Value: v1beta1.ExtractByMax}},
			},
			Parameters: []v1beta1.ParameterSpec{{Name: "lr", ParameterType: v1beta1.ParameterTypeDouble}},
		},
		Status: v1beta1.ExperimentStatus{StartTime: &start, Conditions: []v1beta1.ExperimentCondition{
			{Type: v1beta1.ExperimentRunning},
		}},
	}
}

// ended gives an experiment its last condition.
func ended(e *v1beta1.Experiment, state v1beta1.ExperimentConditionType, reason, message string) *v1beta1.Experiment {
	c := v1beta1.ExperimentCondition{Type: state}
	c.Reason, c.Message = reason, message
	e.Status.Conditions = append(e.Status.Conditions, c)
	return e
}

// aTrial ran for number seconds, and has reported loss when that is not "".
func aTrial(number int, state v1beta1.TrialConditionType, loss string) v1beta1.Trial {
	start := metav1.NewTime(noon)
	end := metav1.NewTime(noon.Add(time.Duration(number) * time.Second))
	trial := v1beta1.Trial{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("charlm-%04d", number), Labels: map[string]string{v1beta1.LabelTrialNumber: strconv.Itoa(number)},
		},
		Spec: v1beta1.TrialSpec{
			Objective:            anExperiment().Spec.Objective,
			ParameterAssignments: []v1beta1.ParameterAssignment{{Name: "lr", Value: fmt.Sprintf("0.%d", number)}},
		},
		Status: v1beta1.TrialStatus{StartTime: &start, Conditions: []v1beta1.TrialCondition{isTrue(v1beta1.TrialCreated), isTrue(state)}},
	}
	if state != v1beta1.TrialRunning && state != v1beta1.TrialCreated {
		trial.Status.CompletionTime = &end
	}
	if loss != "" {
		trial.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{
			{Name: "acc", Min: "0.1", Max: "0.9", Latest: "0.8"},
			{Name: "loss", Min: loss, Max: "9", Latest: "8"},
		}}
	}
	return trial
}

func isTrue(state v1beta1.TrialConditionType) v1beta1.TrialCondition {
	return v1beta1.TrialCondition{Type: state, Condition: v1beta1.Condition{Status: corev1.ConditionTrue}}
}

// withBest names a trial as the best.
func withBest(e *v1beta1.Experiment, trial v1beta1.Trial) *v1beta1.Experiment {
	e.Status.CurrentOptimalTrial = v1beta1.OptimalTrial{
		BestTrialName: trial.Name, ParameterAssignments: trial.Spec.ParameterAssignments, Observation: *trial.Status.Observation,
	}
	return e
}

func requireText(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("no %q in:\n%s", word, text)
		}
	}
}
