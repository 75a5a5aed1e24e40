package experiment

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func unlimited(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = nil }

// An experiment whose program does not exist, and that has no limits, makes at most
// 20 trials in 10 minutes, and says why.
func TestAnExperimentWhoseTrialsAllFailSlowsDownAndStops(t *testing.T) {
	exp, now := anExperiment(unlimited), noon
	var trials []*v1beta1.Trial
	slow := false
	for now.Before(noon.Add(10*time.Minute)) && !exp.IsCompleted() {
		a := planned(exp, trials, findings{}, now)
		exp.Status = a.status
		for range a.add {
			trial := aTrial(len(trials), created)
			trial.MarkFailed("Trial has failed: no such program", metav1.NewTime(now))
			at := metav1.NewTime(now)
			trial.Status.CompletionTime = &at
			trials = append(trials, trial)
		}
		if c := exp.LastCondition(); c.Type == expRunning && strings.Contains(c.Message, "no such program") {
			slow = true
		}
		if a.add == 0 && a.after == 0 && !exp.IsCompleted() {
			t.Fatalf("nothing wakes it after %d trials", len(trials))
		}
		now = now.Add(max(a.after, 100*time.Millisecond))
	}
	if c := exp.LastCondition(); len(trials) > 20 || c.Type != expFailed || !strings.Contains(c.Message, "no such program") {
		t.Errorf("%d trials, %s: %s", len(trials), c.Type, c.Message)
	}
	if took := now.Sub(noon); !slow || took < time.Minute {
		t.Errorf("it ended after %s, and said that it slows down: %v", took, slow)
	}
}

func TestFailuresInARow(t *testing.T) {
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []v1beta1.TrialConditionType
		want   v1beta1.ExperimentConditionType
	}{
		"twelve without a success end it":                     {anExperiment(unlimited), times(12, failed), expFailed},
		"eleven do not":                                       {anExperiment(unlimited), times(11, failed), expRunning},
		"as many as run at once may fail":                     {anExperiment(unlimited, parallel(40)), times(39, failed), expRunning},
		"trials without metrics count":                        {anExperiment(unlimited), times(12, unmeasured), expFailed},
		"trials that were killed do not":                      {anExperiment(unlimited), times(50, killed), expRunning},
		"after a success more are tolerated":                  {anExperiment(unlimited), append(times(1, succeeded), times(59, failed)...), expRunning},
		"but not without end":                                 {anExperiment(unlimited), append(times(1, succeeded), times(60, failed)...), expFailed},
		"a success in between begins the count anew":          {anExperiment(unlimited), append(times(11, failed), succeeded, failed), expRunning},
		"the user's own limit is the limit":                   {anExperiment(unlimited, maxFailed(99)), times(50, failed), expRunning},
		"it is no success that all maxTrialCount have failed": {anExperiment(maxTrials(3)), times(3, failed), expFailed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(planned(tc.exp, trialsIn(tc.trials...), findings{}, noon)); got.State != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

// Creating a trial wakes the experiment again, so that one for each reconcile would
// fill all places.
func TestAfterFailuresOneTrialIsTriedAtATime(t *testing.T) {
	trial := func(n int, c v1beta1.TrialConditionType, at time.Duration) *v1beta1.Trial {
		made := aTrial(n, c)
		made.CreationTimestamp = metav1.NewTime(noon.Add(at))
		if c == failed {
			ended := metav1.NewTime(noon.Add(at + time.Second))
			made.Status.CompletionTime = &ended
		}
		return made
	}
	history := []*v1beta1.Trial{trial(0, running, -time.Hour), trial(1, failed, 0), trial(2, failed, 0), trial(3, failed, 0)}
	tests := map[string]struct {
		more *v1beta1.Trial
		want int
	}{
		"none runs that was made since":     {nil, 1},
		"one runs that was made since":      {trial(4, running, 3*time.Second), 0},
		"the one that was made since fails": {trial(4, failed, 3*time.Second), 1},
		"it has run for a minute":           {trial(4, running, 2*time.Second), 1},
	}
	for name, tc := range tests {
		trials := history
		if tc.more != nil {
			trials = append(slices.Clone(history), tc.more)
		}
		if a := planned(anExperiment(unlimited, parallel(8)), trials, findings{}, noon.Add(62*time.Second)); a.add != tc.want {
			t.Errorf("%s: %d trials are made, want %d", name, a.add, tc.want)
		}
	}
}

func TestOneReconcileMakesABoundedNumberOfTrials(t *testing.T) {
	if a := planned(anExperiment(unlimited, parallel(10_000)), nil, findings{}, noon); a.add != 100 {
		t.Errorf("%d trials are made", a.add)
	}
}

// A failed experiment goes on when more failures are allowed; its trials stay.
func TestAnExperimentThatFailedByItsTrialsGoesOnWhenItsLimitIsRaised(t *testing.T) {
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		raise  func(*v1beta1.Experiment)
		want   v1beta1.ExperimentConditionType
	}{
		"maxFailedTrialCount is raised":           {anExperiment(maxFailed(2)), trialsIn(succeeded, failed, failed), maxFailed(3), expRestart},
		"not far enough":                          {anExperiment(maxFailed(2)), trialsIn(succeeded, failed, failed), maxFailed(2), expFailed},
		"there is no trial left":                  {anExperiment(maxFailed(2), maxTrials(3)), trialsIn(succeeded, failed, failed), maxFailed(3), expFailed},
		"the default for failures in a row":       {anExperiment(unlimited), trialsIn(times(12, failed)...), maxFailed(20), expRestart},
		"more trials after all of few had failed": {anExperiment(maxTrials(3)), trialsIn(failed, failed, failed), maxTrials(9), expRestart},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.exp.Status = planned(tc.exp, tc.trials, findings{}, noon).status
			if !tc.exp.IsFailed() {
				t.Fatalf("%+v", tc.exp.LastCondition())
			}
			tc.raise(tc.exp)
			tc.exp.Status = planned(tc.exp, tc.trials, findings{}, noon).status
			if got := tc.exp.LastCondition().Type; got != tc.want {
				t.Fatalf("%s, want %s", got, tc.want)
			}
			if tc.want == expRestart {
				if a := planned(tc.exp, tc.trials, findings{}, noon.Add(time.Hour)); over(&a.status) || a.add == 0 {
					t.Errorf("it does not go on: %+v", outcomeOf(a))
				}
			}
		})
	}
}
