package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func suspend(e *v1beta1.Experiment) { e.Spec.Suspend = true }

func end(how string) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) { metav1.SetMetaDataAnnotation(&e.ObjectMeta, v1beta1.AnnotationEnd, how) }
}

// since makes an experiment one that started before noon and ends after an hour.
func since(ago time.Duration) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.Spec.MaxDuration = &metav1.Duration{Duration: time.Hour}
		e.Status.StartTime = ptr.To(metav1.NewTime(noon.Add(-ago)))
	}
}

func TestPlanOfTime(t *testing.T) {
	restarted := func(e *v1beta1.Experiment) { e.MarkRestarting("", metav1.NewTime(noon.Add(-time.Minute))) }
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		want   outcome
		after  time.Duration
		says   string
	}{
		"a suspended one makes no trials": {
			anExperiment(suspend), trialsIn(succeeded, running), outcome{State: expRunning, Reason: runReason}, 0, messageSuspended},
		"a suspended one may not have begun": {
			anExperiment(suspend), nil, outcome{State: v1beta1.ExperimentCreated, Reason: v1beta1.ReasonExperimentCreated}, 0, messageSuspended},
		"a suspended one ends as any other": {
			anExperiment(suspend, maxTrials(1)), trialsIn(succeeded), outcome{State: expDone, Reason: maxReason}, 0, messageMaxTrials},
		"a stopped one lets its trials end": {
			anExperiment(end(v1beta1.EndStop)), trialsIn(succeeded, running), outcome{State: expRunning, Reason: runReason}, 0, messageStopping},
		"a stopped one ends with its last trial": {
			anExperiment(end(v1beta1.EndStop)), trialsIn(succeeded, failed), outcome{State: expDone, Reason: v1beta1.ReasonExperimentStopped}, 0,
			"Experiment has ended because it was stopped after 2 trials"},
		"a cancelled one stops its trials": {
			anExperiment(end(v1beta1.EndCancel), suspend), trialsIn(succeeded, running), outcome{Stop: []string{"exp-0001"}, State: expDone, Reason: v1beta1.ReasonExperimentStopped}, 0,
			"Experiment has ended because it was stopped after 2 trials"},
		"one that is stopped before it begins has failed": {
			anExperiment(end(v1beta1.EndStop)), nil, outcome{State: expFailed, Reason: failReason}, 0, messageStoppedEmpty},
		"there is time": {
			anExperiment(since(50 * time.Minute)), trialsIn(running, running, running), outcome{First: 3, State: expRunning, Reason: runReason}, 10 * time.Minute, messageRunning},
		"time is over": {
			anExperiment(since(time.Hour)), trialsIn(succeeded, running), outcome{Stop: []string{"exp-0001"}, State: expDone, Reason: v1beta1.ReasonExperimentMaxDurationReached}, 0,
			"Experiment has succeeded because max duration of 1h0m0s has reached"},
		"time is over before anything was measured": {
			anExperiment(since(time.Hour)), trialsIn(failed, running), outcome{Stop: []string{"exp-0001"}, State: expFailed, Reason: failReason}, 0,
			"Experiment has failed because no trial had a result within its maxDuration, 1h0m0s"},
		"the number of trials goes before time": {
			anExperiment(since(2*time.Hour), maxTrials(1)), trialsIn(succeeded), outcome{State: expDone, Reason: maxReason}, 0, messageMaxTrials},
		"one that goes on has its time again": {
			anExperiment(since(9*time.Hour), restarted), trialsIn(running, running, running), outcome{First: 3, State: expRunning, Reason: runReason}, 59 * time.Minute, messageRunning},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := planned(tc.exp, tc.trials, findings{}, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(a)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if c := current(&a.status); a.after != tc.after || c.Message != tc.says {
				t.Errorf("looked at again after %s, want %s; it says %q", a.after, tc.after, c.Message)
			}
		})
	}
}

func TestASuspensionHasOneEvent(t *testing.T) {
	exp := anExperiment()
	before := planned(exp, trialsIn(running), findings{}, noon).status
	exp.Status = before
	suspend(exp)
	after := planned(exp, trialsIn(running), findings{}, noon).status
	got := transitions(exp, &before, &after)
	if len(got) != 1 || got[0].Reason != "Suspended" || got[0].Type != "Normal" {
		t.Errorf("events: %+v", got)
	}
	if again := transitions(exp, &after, &after); len(again) > 0 {
		t.Errorf("and again: %+v", again)
	}
}

func TestAnExperimentWithoutATemplateSaysWhoRunsItsTrials(t *testing.T) {
	exp := anExperiment()
	before := exp.Status
	after := planned(exp, nil, findings{}, noon).status
	if c := current(&after); c.Type != v1beta1.ExperimentCreated || !strings.HasPrefix(c.Message, messageCreated) || !strings.Contains(c.Message, "no trialTemplate") {
		t.Errorf("it is %s and says %q", c.Type, c.Message)
	}
	for _, e := range transitions(exp, &before, &after) {
		if e.Type == corev1.EventTypeWarning {
			t.Errorf("a warning: %+v", e)
		}
	}
	exp.Spec.TrialTemplate = &v1beta1.TrialTemplate{}
	after = planned(exp, nil, findings{}, noon).status
	if c := current(&after); c.Message != messageCreated {
		t.Errorf("with a template it says %q", c.Message)
	}
}

func TestNewBestHasRoundNumbers(t *testing.T) {
	best := v1beta1.OptimalTrial{BestTrialName: "exp-0003", Observation: v1beta1.Observation{Metrics: []v1beta1.Metric{{Name: "loss", Min: "0.12345678901234567", Max: "unavailable", Latest: "3"}}}}
	want := "Trial exp-0003 is the best so far: loss min=0.123457 max=unavailable latest=3"
	if diff := cmp.Diff(want, newBest(best, "loss").Note); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
