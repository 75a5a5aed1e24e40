package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func (w *world) suspend(e *v1beta1.Experiment, yes bool) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), e, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, yes))); err != nil {
		w.t.Fatal(err)
	}
}

func TestASuspendedExperimentMakesNoTrials(t *testing.T) {
	w := newWorld(t, never)
	w.start()
	e := w.experiment("exp")
	w.create(e)
	w.eventually("two trials run", func() string { return lacks(w.read(e).Status.TrialsRunning, 2) })
	w.suspend(e, true)
	w.eventually("it says that it is suspended", func() string {
		if c := w.read(e).LastCondition(); !strings.Contains(c.Message, "suspended") {
			return c.Message
		}
		return ""
	})
	w.behave(byNumber(0))
	w.eventually("the trials that ran have succeeded", func() string { return lacks(w.read(e).Status.TrialsSucceeded, 2) })
	if n := len(w.trialsOf(e)); n != 2 {
		t.Errorf("%d trials", n)
	}
	w.suspend(e, false)
	if got := w.ends(e, v1beta1.ReasonExperimentMaxTrialsReached); got.Status.TrialsSucceeded != 6 {
		t.Errorf("status: %+v", got.Status)
	}
}

func lacks(n, want int32) string {
	if n != want {
		return fmt.Sprintf("%d of %d", n, want)
	}
	return ""
}

// Nothing but the end of its time wakes the experiment.
func TestAnExperimentEndsWithItsTime(t *testing.T) {
	w := newWorld(t, func(name string) ending { return ending{never: name != "exp-0000", points: []float64{1}} })
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) { e.Spec.MaxDuration = &metav1.Duration{Duration: 3 * time.Second} })
	w.create(e)
	got := w.ends(e, v1beta1.ReasonExperimentMaxDurationReached)
	if got.Status.CurrentOptimalTrial.BestTrialName != "exp-0000" {
		t.Errorf("best: %+v", got.Status.CurrentOptimalTrial)
	}
	w.noJobs()
}

// Both trials ask for a GPU; the program of one runs since an hour, and the other waits.
func TestAnExperimentEndsWithItsGPUHours(t *testing.T) {
	w := newWorld(t, never)
	w.start()
	hours := 0.5
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.MaxGPUHours = &hours
		e.Spec.TrialTemplate.TrialSpec.Raw = []byte(strings.Replace(jobTemplate, `"name": "main",`, `"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}},`, 1))
	})
	w.create(e)
	w.eventually("two trials run", func() string { return lacks(w.read(e).Status.TrialsRunning, 2) })
	w.podOf("exp-0000", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-time.Hour))}},
	}}})
	w.eventually("it has failed, as no trial has a result", func() string {
		if c := w.read(e).LastCondition(); c.Type != v1beta1.ExperimentFailed || !strings.HasSuffix(c.Message, "within its maxGPUHours, 0.5") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	w.eventually("what was used is the hour of one", func() string {
		if got := w.read(e).Status; got.TrialsKilled != 2 || got.GPUHours != "1.00" {
			return fmt.Sprintf("%d were killed, after %q", got.TrialsKilled, got.GPUHours)
		}
		return ""
	})
}

// podOf makes a pod of a trial.
func (w *world) podOf(trial string, status corev1.PodStatus) {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: trial, Labels: map[string]string{v1beta1.LabelTrial: trial}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "train"}}},
	}
	if err := w.client.Create(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
	pod.Status = status
	if err := w.client.Status().Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

func TestTrialsEndWithTheirTime(t *testing.T) {
	w := newWorld(t, never)
	w.start()
	e := w.experiment("exp", func(e *v1beta1.Experiment) {
		e.Spec.MaxTrialDuration, e.Spec.MaxTrialWaitDuration = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: time.Minute}
	})
	w.create(e)
	w.eventually("two trials run", func() string { return lacks(w.read(e).Status.TrialsRunning, 2) })
	long := metav1.NewTime(time.Now().Add(-2 * time.Hour))
	for name, status := range map[string]corev1.PodStatus{
		"exp-0000": {Phase: corev1.PodRunning, StartTime: &long},
		"exp-0001": {Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available", LastTransitionTime: long,
		}}},
	} {
		w.podOf(name, status)
	}
	for i, why := range []string{"It ran longer than its experiment's maxTrialDuration, 1h0m0s", "It waited too long. pod exp-0001 finds no node"} {
		w.eventually(why, func() string {
			if c := w.trialsOf(e)[i].LastCondition(); c.Type != v1beta1.TrialFailed || !strings.Contains(c.Message, why) {
				return fmt.Sprintf("%+v", c)
			}
			return ""
		})
	}
}
