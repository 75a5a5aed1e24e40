package v1beta1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// at is the n-th second of the tests' time.
func at(n int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 11, 21, 12, 0, n, 0, time.UTC))
}

// line is a condition in short: Type=Status(Reason).
func line(conditionType string, c v1beta1.Condition) string {
	return conditionType + "=" + string(c.Status) + "(" + c.Reason + ")"
}

func TestExperimentConditions(t *testing.T) {
	type step = func(*v1beta1.Experiment)
	created := func(e *v1beta1.Experiment) { e.MarkCreated("m", at(1)) }
	running := func(e *v1beta1.Experiment) { e.MarkRunning("m", at(2)) }
	succeeded := func(e *v1beta1.Experiment) {
		e.MarkSucceeded(v1beta1.ReasonExperimentMaxTrialsReached, "m", at(3))
	}
	restarting := func(e *v1beta1.Experiment) { e.MarkRestarting("m", at(4)) }
	failed := func(e *v1beta1.Experiment) { e.MarkFailed(v1beta1.ReasonExperimentFailed, "m", at(5)) }
	const (
		isCreated  = "Created=True(ExperimentCreated)"
		isRunning  = "Running=True(ExperimentRunning)"
		notRunning = "Running=False(ExperimentRunning)"
		isRestart  = "Restarting=True(ExperimentRestarting)"
		maxReached = "Succeeded=True(ExperimentMaxTrialsReached)"
		isFailed   = "Failed=True(ExperimentFailed)"
	)
	tests := map[string]struct {
		steps         []step
		want          []string
		wantCompleted bool
	}{
		"created":   {[]step{created}, []string{isCreated}, false},
		"running":   {[]step{created, running}, []string{isCreated, isRunning}, false},
		"succeeded": {[]step{created, running, succeeded}, []string{isCreated, notRunning, maxReached}, true},
		"failed before it ran": {
			[]step{created, failed}, []string{isCreated, isFailed}, true,
		},
		"restarted": {
			[]step{created, running, succeeded, restarting}, []string{isCreated, notRunning, isRestart}, false,
		},
		"running again": {
			[]step{created, running, succeeded, restarting, running}, []string{isCreated, isRestart, isRunning}, false,
		},
		"restarted twice": {
			[]step{created, running, succeeded, restarting, running, succeeded, restarting},
			[]string{isCreated, notRunning, isRestart}, false,
		},
		"failed at last": {
			[]step{created, running, failed, failed}, []string{isCreated, notRunning, isFailed}, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := &v1beta1.Experiment{}
			for _, s := range tc.steps {
				s(e)
			}
			var got []string
			for _, c := range e.Status.Conditions {
				got = append(got, line(string(c.Type), c.Condition))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if e.IsCompleted() != tc.wantCompleted {
				t.Errorf("completed: %v", e.IsCompleted())
			}
			last := e.LastCondition()
			if got := line(string(last.Type), last.Condition); got != tc.want[len(tc.want)-1] {
				t.Errorf("the current state is %s", got)
			}
		})
	}
}

func TestConditionTimes(t *testing.T) {
	e := &v1beta1.Experiment{}
	e.MarkRunning("first", at(1))
	e.MarkRunning("second", at(2))
	c := e.Condition(v1beta1.ExperimentRunning)
	if c.Message != "first" || !c.LastUpdateTime.Equal(ptr(at(1))) {
		t.Errorf("an unchanged condition was written: %+v", c)
	}
	e.SetCondition(v1beta1.ExperimentRunning, v1beta1.Condition{Status: "True", Reason: "Other"}, at(3))
	c = e.Condition(v1beta1.ExperimentRunning)
	if !c.LastUpdateTime.Equal(ptr(at(3))) || !c.LastTransitionTime.Equal(ptr(at(1))) {
		t.Errorf("a new reason is an update, not a transition: %+v", c)
	}
	e.MarkFailed(v1beta1.ReasonExperimentFailed, "m", at(4))
	c = e.Condition(v1beta1.ExperimentRunning)
	if !c.LastTransitionTime.Equal(ptr(at(4))) || c.Reason != "Other" {
		t.Errorf("the end is a transition that keeps the reason: %+v", c)
	}
}

func ptr[T any](v T) *T { return &v }

func TestTrialConditions(t *testing.T) {
	tests := map[string]struct {
		mark func(*v1beta1.Trial)
		want string
		is   func(*v1beta1.Trial) bool
	}{
		"succeeded": {func(t *v1beta1.Trial) { t.MarkSucceeded("m", at(3)) }, "Succeeded=True(TrialSucceeded)", (*v1beta1.Trial).IsSucceeded},
		"failed":    {func(t *v1beta1.Trial) { t.MarkFailed("m", at(3)) }, "Failed=True(TrialFailed)", (*v1beta1.Trial).IsFailed},
		"killed":    {func(t *v1beta1.Trial) { t.MarkKilled("m", at(3)) }, "Killed=True(TrialKilled)", (*v1beta1.Trial).IsKilled},
		"stopped":   {func(t *v1beta1.Trial) { t.MarkEarlyStopped("m", at(3)) }, "EarlyStopped=True(TrialEarlyStopped)", (*v1beta1.Trial).IsEarlyStopped},
		"no metrics": {func(t *v1beta1.Trial) { t.MarkMetricsUnavailable("m", at(3)) },
			"MetricsUnavailable=True(MetricsUnavailable)", (*v1beta1.Trial).IsMetricsUnavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			trial := &v1beta1.Trial{}
			trial.MarkCreated("m", at(1))
			trial.MarkRunning("m", at(2))
			if trial.IsCompleted() || !trial.IsRunning() {
				t.Error("it has not ended yet")
			}
			tc.mark(trial)
			var got []string
			for _, c := range trial.Status.Conditions {
				got = append(got, line(string(c.Type), c.Condition))
			}
			want := []string{"Created=True(TrialCreated)", "Running=False(TrialRunning)", tc.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !tc.is(trial) || !trial.IsCompleted() || trial.IsRunning() || !trial.IsCreated() {
				t.Error("the trial does not know its state")
			}
		})
	}
}

func TestSuggestionConditions(t *testing.T) {
	s := &v1beta1.Suggestion{}
	s.MarkCreated("m", at(1))
	s.MarkDeploymentReady("m", at(2))
	s.MarkRunning("m", at(3))
	s.MarkSucceeded("m", at(4))
	if !s.IsSucceeded() || !s.IsCreated() {
		t.Error("the suggestion does not know its state")
	}
	s.MarkRestarting("m", at(5))
	s.MarkRunning("m", at(6))
	s.MarkFailed("m", at(7))
	var got []string
	for _, c := range s.Status.Conditions {
		got = append(got, line(string(c.Type), c.Condition))
	}
	want := []string{
		"Created=True(SuggestionCreated)", "DeploymentReady=True(DeploymentReady)",
		"Running=False(SuggestionRunning)", "Failed=True(SuggestionFailed)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !s.IsFailed() || s.IsSucceeded() {
		t.Error("the suggestion does not know its state")
	}
}

func TestCanResume(t *testing.T) {
	for name, tc := range map[string]struct {
		policy v1beta1.ResumePolicy
		reason string
		want   bool
	}{
		"all trials run, LongRunning": {v1beta1.LongRunning, v1beta1.ReasonExperimentMaxTrialsReached, true},
		"all trials run, FromVolume":  {v1beta1.FromVolume, v1beta1.ReasonExperimentMaxTrialsReached, true},
		"all trials run, Never":       {v1beta1.NeverResume, v1beta1.ReasonExperimentMaxTrialsReached, false},
		"goal reached":                {v1beta1.LongRunning, v1beta1.ReasonExperimentGoalReached, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &v1beta1.Experiment{Spec: v1beta1.ExperimentSpec{ResumePolicy: tc.policy}}
			e.MarkSucceeded(tc.reason, "", at(1))
			if got := e.CanResume(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWhatAProgramPrintsSuspendsNoTrial(t *testing.T) {
	for message, want := range map[string]string{
		"Trial is running. " + v1beta1.QueuedSays + ": it is suspended":                                     v1beta1.QueuedSays,
		"Trial is running. " + v1beta1.CollectorSays + "loss was not found; there is " + v1beta1.QueuedSays: "",
	} {
		c := &v1beta1.TrialCondition{Type: v1beta1.TrialRunning, Condition: v1beta1.Condition{Message: message}}
		if got := c.Suspension(); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
