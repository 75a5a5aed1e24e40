package experiment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

func TestPlanEnds(t *testing.T) {
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		want   outcome
	}{
		"a reached goal ends it and stops what runs": {
			anExperiment(goal(0.1)), []*v1beta1.Trial{loss1(0, "0.1"), aTrial(1, running), aTrial(2, created)},
			outcome{Stop: []string{"exp-0001", "exp-0002"}, State: expDone, Reason: goalReason, Best: "exp-0000"}},
		"a goal of zero is a goal": {
			anExperiment(goal(0)), []*v1beta1.Trial{loss1(0, "-1")},
			outcome{State: expDone, Reason: goalReason, Best: "exp-0000"}},
		"a missed goal does not end it": {
			anExperiment(goal(0.1)), []*v1beta1.Trial{loss1(0, "0.11"), aTrial(1, running), aTrial(2, running)},
			outcome{Add: 1, First: 3, State: expRunning, Reason: runReason, Best: "exp-0000"}},
		"a maximized goal counts the other way": {
			anExperiment(maximize, goal(0.9)), []*v1beta1.Trial{loss1(0, "0.95")},
			outcome{State: expDone, Reason: goalReason, Best: "exp-0000"}},
		"NaN reaches no goal and is never best": {
			anExperiment(goal(0.1), parallel(1)), []*v1beta1.Trial{loss1(0, "NaN"), loss1(1, "5")},
			outcome{Add: 1, First: 2, State: expRunning, Reason: runReason, Best: "exp-0001"}},
		"infinities reach no goal and are never best": {
			anExperiment(goal(0.1), parallel(1)), []*v1beta1.Trial{loss1(0, "-Inf"), loss1(1, "5")},
			outcome{Add: 1, First: 2, State: expRunning, Reason: runReason, Best: "exp-0001"}},
		"a word is never best": {
			anExperiment(parallel(1)), []*v1beta1.Trial{loss1(0, "Genotype(a)"), loss1(1, "5")},
			outcome{Add: 1, First: 2, State: expRunning, Reason: runReason, Best: "exp-0001"}},
		"the goal goes before failures": {
			anExperiment(goal(1), maxFailed(1)), []*v1beta1.Trial{loss1(0, "1"), aTrial(1, failed)},
			outcome{State: expDone, Reason: goalReason, Best: "exp-0000"}},
		"failures go before the number of trials": {
			anExperiment(maxTrials(2), maxFailed(1), parallel(1)), []*v1beta1.Trial{loss1(0, "1"), aTrial(1, failed)},
			outcome{State: expFailed, Reason: failReason, Best: "exp-0000"}},
		"maxFailedTrialCount zero allows no failure": {
			anExperiment(maxFailed(0)), trialsIn(running, failed),
			outcome{Stop: []string{"exp-0000"}, State: expFailed, Reason: failReason}},
		"maxFailedTrialCount zero is no failure by itself": {
			anExperiment(maxFailed(0)), trialsIn(running, succeeded, running),
			outcome{Add: 1, First: 3, State: expRunning, Reason: runReason}},
		"failed trials and trials without metrics count together": {
			anExperiment(maxFailed(2)), trialsIn(failed, unmeasured),
			outcome{State: expFailed, Reason: failReason}},
		"an experiment whose trials have all failed has not succeeded": {
			anExperiment(maxTrials(2)), trialsIn(failed, unmeasured),
			outcome{State: expFailed, Reason: failReason}},
		"killed trials are no failures": {
			anExperiment(maxFailed(1), parallel(1)), trialsIn(killed, killed),
			outcome{Add: 1, First: 2, State: expRunning, Reason: runReason}},
		"a trial that was asked to stop is not asked again": {
			anExperiment(endedBy(goalReason)), func() []*v1beta1.Trial {
				asked := aTrial(1, running)
				asked.Annotations = map[string]string{v1beta1.AnnotationStop: "so"}
				return []*v1beta1.Trial{aTrial(0, running), asked}
			}(),
			outcome{Stop: []string{"exp-0000"}, State: expDone, Reason: goalReason}},
		"a failed trial with a good value is not best": {
			anExperiment(parallel(1)), func() []*v1beta1.Trial {
				bad := loss1(0, "0")
				bad.Status.Conditions = aTrial(0, failed).Status.Conditions
				return []*v1beta1.Trial{bad, loss1(1, "3")}
			}(),
			outcome{Add: 1, First: 2, State: expRunning, Reason: runReason, Best: "exp-0001"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(planned(tc.exp, tc.trials, findings{}, noon))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// Trials that end together with the one too many are in the message as well,
// whichever is seen first.
func TestTheMessageOfTooManyFailuresCountsThoseThatEndedLater(t *testing.T) {
	const begin = "Experiment has failed because max failed count has reached: "
	tests := map[string]struct {
		change       []func(*v1beta1.Experiment) // after the experiment has failed
		later        []v1beta1.TrialConditionType
		first, after string
	}{
		"another trial without metrics": {
			later: []v1beta1.TrialConditionType{unmeasured, unmeasured}, first: "0 trials failed and 1 has no metrics", after: "0 trials failed and 2 have no metrics"},
		"another trial that failed": {
			later: []v1beta1.TrialConditionType{unmeasured, failed}, first: "0 trials failed and 1 has no metrics", after: "1 trial failed and 1 has no metrics"},
		"a trial that was stopped does not count": {
			later: []v1beta1.TrialConditionType{unmeasured, killed}, first: "0 trials failed and 1 has no metrics", after: "0 trials failed and 1 has no metrics"},
		"trials that were deleted stay in it": {
			later: []v1beta1.TrialConditionType{unmeasured}, first: "0 trials failed and 1 has no metrics", after: "0 trials failed and 1 has no metrics"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := anExperiment(maxFailed(1), parallel(2))
			exp.Status = planned(exp, trialsIn(unmeasured, running), findings{}, noon).status
			said := func(counts string) {
				t.Helper()
				want := begin + counts + " (maxFailedTrialCount is 1). The conditions of these trials say why"
				if c := exp.LastCondition(); c.Type != v1beta1.ExperimentFailed || c.Message != want {
					t.Errorf("%s: %q, want %q", c.Type, c.Message, want)
				}
			}
			said(tc.first)
			before := exp.Status
			exp.Status = planned(exp, trialsIn(tc.later...), findings{}, noon.Add(time.Second)).status
			said(tc.after)
			if events := transitions(exp, &before, &exp.Status); len(events) > 0 {
				t.Errorf("events %v", events)
			}
		})
	}
	t.Run("another reason to fail is left alone", func(t *testing.T) {
		exp := anExperiment(maxFailed(1), parallel(2))
		exp.Status = planned(exp, trialsIn(running, running), findings{fatal: "no such algorithm"}, noon).status
		exp.Status = planned(exp, trialsIn(unmeasured, unmeasured), findings{}, noon).status
		if c := exp.LastCondition(); c.Message != "no such algorithm" {
			t.Errorf("%+v", c)
		}
	})
}
