package study

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func aTrial(n int, state v1beta1.TrialConditionType) *v1beta1.Trial {
	t := &v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: v1beta1.TrialName("exp", n),
		Labels: map[string]string{v1beta1.LabelTrialNumber: fmt.Sprint(n)},
	}}
	at := metav1.NewTime(noon)
	t.MarkCreated("", at)
	switch state {
	case v1beta1.TrialRunning:
		t.MarkRunning("", at)
	case v1beta1.TrialSucceeded:
		t.MarkRunning("", at)
		t.MarkSucceeded("", at)
	case v1beta1.TrialFailed:
		t.MarkRunning("", at)
		t.MarkFailed("", at)
	case v1beta1.TrialKilled:
		t.MarkKilled("", at)
	case v1beta1.TrialEarlyStopped:
		t.MarkEarlyStopped("", at)
	case v1beta1.TrialMetricsUnavailable:
		t.MarkMetricsUnavailable("", at)
	}
	return t
}

// measured is a trial that succeeded with min, max and latest.
func measured(n int, low, high, latest string) *v1beta1.Trial {
	t := aTrial(n, v1beta1.TrialSucceeded)
	t.Status.Observation = &v1beta1.Observation{Metrics: []v1beta1.Metric{
		{Name: "other", Min: "0", Max: "0", Latest: "0"},
		{Name: "loss", Min: low, Max: high, Latest: latest},
	}}
	return t
}
