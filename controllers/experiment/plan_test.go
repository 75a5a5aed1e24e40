package experiment

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// An experiment that minimizes loss, with up to ten trials, three at a time.
func anExperiment(change ...func(*v1beta1.Experiment)) *v1beta1.Experiment {
	e := &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "exp", UID: "exp-uid", CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1beta1.ExperimentSpec{
			Objective:          &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
			ParallelTrialCount: ptr.To[int32](3),
			MaxTrialCount:      ptr.To[int32](10),
		},
	}
	for _, f := range change {
		f(e)
	}
	v1beta1.SetDefaults(e)
	return e
}

func goal(g float64) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) { e.Spec.Objective.Goal = &g }
}

func parallel(n int32) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) { e.Spec.ParallelTrialCount = &n }
}

func maxTrials(n int32) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = &n }
}

func maxFailed(n int32) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) { e.Spec.MaxFailedTrialCount = &n }
}

func resume(p v1beta1.ResumePolicy) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) { e.Spec.ResumePolicy = p }
}

func maximize(e *v1beta1.Experiment) { e.Spec.Objective.Type = v1beta1.ObjectiveTypeMaximize }

func strategy(s v1beta1.MetricStrategyType) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.Spec.Objective.MetricStrategies = []v1beta1.MetricStrategy{{Name: "loss", Value: s}}
	}
}

// valued is a trial with a value by strategy, beside the three that all have.
func valued(n int, value, others string) *v1beta1.Trial {
	t := measured(n, others, others, others)
	for i := range t.Status.Observation.Metrics {
		t.Status.Observation.Metrics[i].Value = value
	}
	return t
}

func endedBy(reason string) func(*v1beta1.Experiment) {
	return func(e *v1beta1.Experiment) {
		e.MarkCreated("", metav1.NewTime(noon))
		e.MarkRunning("", metav1.NewTime(noon))
		if reason == v1beta1.ReasonExperimentFailed {
			e.MarkFailed(reason, "", metav1.NewTime(noon))
		} else {
			e.MarkSucceeded(reason, "", metav1.NewTime(noon))
		}
		e.Status.CompletionTime = ptr.To(metav1.NewTime(noon))
	}
}

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

func loss1(n int, v string) *v1beta1.Trial { return measured(n, v, v, v) }

func trialsIn(states ...v1beta1.TrialConditionType) []*v1beta1.Trial {
	var out []*v1beta1.Trial
	for i, s := range states {
		out = append(out, aTrial(i, s))
	}
	return out
}

func times(n int, s v1beta1.TrialConditionType) []v1beta1.TrialConditionType {
	var out []v1beta1.TrialConditionType
	for range n {
		out = append(out, s)
	}
	return out
}

// outcome is what the tables compare.
type outcome struct {
	Add, First   int
	Stop         []string
	State        v1beta1.ExperimentConditionType
	Reason, Best string
}

func outcomeOf(a actions) outcome {
	o := outcome{Add: a.add, First: a.first, Best: a.status.CurrentOptimalTrial.BestTrialName}
	for _, t := range a.stop {
		o.Stop = append(o.Stop, t.Name)
	}
	last := current(&a.status)
	o.State, o.Reason = last.Type, last.Reason
	return o
}

const (
	created     = v1beta1.TrialCreated
	running     = v1beta1.TrialRunning
	succeeded   = v1beta1.TrialSucceeded
	failed      = v1beta1.TrialFailed
	killed      = v1beta1.TrialKilled
	unmeasured  = v1beta1.TrialMetricsUnavailable
	earlyStop   = v1beta1.TrialEarlyStopped
	expCreated  = v1beta1.ExperimentCreated
	expRunning  = v1beta1.ExperimentRunning
	expDone     = v1beta1.ExperimentSucceeded
	expFailed   = v1beta1.ExperimentFailed
	expRestart  = v1beta1.ExperimentRestarting
	goalReason  = v1beta1.ReasonExperimentGoalReached
	maxReason   = v1beta1.ReasonExperimentMaxTrialsReached
	endReason   = v1beta1.ReasonExperimentSuggestionEndReached
	failReason  = v1beta1.ReasonExperimentFailed
	runReason   = v1beta1.ReasonExperimentRunning
	madeReason  = v1beta1.ReasonExperimentCreated
	againReason = v1beta1.ReasonExperimentRestarting
)

func TestPlanCounts(t *testing.T) {
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		found  findings
		want   outcome
	}{
		"a new experiment starts as many trials as run at once": {
			anExperiment(), nil, findings{},
			outcome{Add: 3, State: expCreated, Reason: madeReason}},
		"no more than maxTrialCount are started": {
			anExperiment(maxTrials(2)), nil, findings{},
			outcome{Add: 2, State: expCreated, Reason: madeReason}},
		"a full house starts none": {
			anExperiment(), trialsIn(running, created, running), findings{},
			outcome{First: 3, State: expRunning, Reason: runReason}},
		"each ended trial makes room for one": {
			anExperiment(), trialsIn(failed, running, killed), findings{},
			outcome{Add: 2, First: 3, State: expRunning, Reason: runReason}},
		"the budget limits the last ones": {
			anExperiment(maxTrials(4)), trialsIn(failed, failed, running), findings{},
			outcome{Add: 1, First: 3, State: expRunning, Reason: runReason}},
		"trials without metrics count against the budget": {
			anExperiment(maxTrials(4)), trialsIn(unmeasured, unmeasured, unmeasured, running), findings{},
			outcome{First: 4, State: expRunning, Reason: runReason}},
		"without a budget it goes on": {
			anExperiment(func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = nil }),
			trialsIn(times(100, failed)...), findings{},
			outcome{Add: 3, First: 100, State: expRunning, Reason: runReason}},
		"lowered parallelism starts none and stops none": {
			anExperiment(parallel(1)), trialsIn(running, running, running), findings{},
			outcome{First: 3, State: expRunning, Reason: runReason}},
		"lowered parallelism waits until fewer run than allowed": {
			anExperiment(parallel(2)), trialsIn(succeeded, running, running), findings{},
			outcome{First: 3, State: expRunning, Reason: runReason}},
		"raised parallelism starts at once": {
			anExperiment(parallel(6)), trialsIn(running, running, running), findings{},
			outcome{Add: 3, First: 3, State: expRunning, Reason: runReason}},
		"numbers go on after the highest, whatever was deleted": {
			anExperiment(), []*v1beta1.Trial{aTrial(1, succeeded), aTrial(7, running)}, findings{},
			outcome{Add: 2, First: 8, State: expRunning, Reason: runReason}},
		"trouble is no end, and nothing is started twice": {
			anExperiment(), nil, findings{trouble: "no ConfigMap"},
			outcome{State: expCreated, Reason: madeReason}},
		"maxTrialCount ends it": {
			anExperiment(maxTrials(5)), trialsIn(succeeded, failed, killed, earlyStop, unmeasured), findings{},
			outcome{State: expDone, Reason: maxReason}},
		"the last running trial is waited for": {
			anExperiment(maxTrials(3)), trialsIn(succeeded, succeeded, running), findings{},
			outcome{First: 3, State: expRunning, Reason: runReason}},
		"an exhausted space ends it once all have ended": {
			anExperiment(), trialsIn(succeeded, failed), findings{exhausted: true},
			outcome{State: expDone, Reason: endReason}},
		"an exhausted space waits for running trials": {
			anExperiment(), trialsIn(succeeded, running), findings{exhausted: true},
			outcome{State: expRunning, Reason: runReason}},
		"a fatal finding ends it and stops what runs": {
			anExperiment(), trialsIn(succeeded, running), findings{fatal: "no"},
			outcome{Stop: []string{"exp-0001"}, State: expFailed, Reason: failReason}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := outcomeOf(plan(tc.exp, tc.trials, tc.found, noon))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

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
			got := outcomeOf(plan(tc.exp, tc.trials, findings{}, noon))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanResumes(t *testing.T) {
	done := trialsIn(succeeded, succeeded)
	tests := map[string]struct {
		exp  *v1beta1.Experiment
		want outcome
	}{
		"a raised maxTrialCount restarts": {
			anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(maxReason)), outcome{State: expRestart, Reason: againReason}},
		"FromVolume restarts too": {
			anExperiment(maxTrials(3), resume(v1beta1.FromVolume), endedBy(maxReason)), outcome{State: expRestart, Reason: againReason}},
		"a removed maxTrialCount restarts": {
			anExperiment(func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = nil }, resume(v1beta1.LongRunning), endedBy(maxReason)),
			outcome{State: expRestart, Reason: againReason}},
		"an unchanged maxTrialCount does not": {
			anExperiment(maxTrials(2), resume(v1beta1.LongRunning), endedBy(maxReason)), outcome{State: expDone, Reason: maxReason}},
		"Never does not": {
			anExperiment(maxTrials(3), resume(v1beta1.NeverResume), endedBy(maxReason)), outcome{State: expDone, Reason: maxReason}},
		"what reached its goal does not": {
			anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(goalReason)), outcome{State: expDone, Reason: goalReason}},
		"what failed does not": {
			anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(failReason)), outcome{State: expFailed, Reason: failReason}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := plan(tc.exp, done, findings{}, noon)
			if diff := cmp.Diff(tc.want, outcomeOf(a)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if restarted := tc.want.State == expRestart; restarted != (a.status.CompletionTime == nil) {
				t.Errorf("completionTime = %v", a.status.CompletionTime)
			}
		})
	}
}

// A trial that is deleted after the end, or that the cache does not show yet
// after a restart of the manager, is no reason to train again.
func TestDeletedTrialsDoNotRestart(t *testing.T) {
	exp := anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(maxReason))
	exp.Status.Trials = 3
	for range 2 {
		a := plan(exp, trialsIn(succeeded, succeeded), findings{}, noon)
		if diff := cmp.Diff(outcome{State: expDone, Reason: maxReason}, outcomeOf(a)); diff != "" {
			t.Fatalf("plan (-want +got):\n%s", diff)
		}
		exp.Status = a.status
	}
	exp.Spec.MaxTrialCount = ptr.To[int32](4)
	if got := outcomeOf(plan(exp, trialsIn(succeeded, succeeded), findings{}, noon)); got.State != expRestart {
		t.Errorf("with a raised maxTrialCount: %+v", got)
	}
}

func TestRestartedExperimentRunsAndEndsAgain(t *testing.T) {
	exp := anExperiment(maxTrials(3), resume(v1beta1.LongRunning), endedBy(maxReason))
	exp.Status = plan(exp, trialsIn(succeeded, succeeded), findings{}, noon).status
	a := plan(exp, trialsIn(succeeded, succeeded), findings{}, noon)
	if diff := cmp.Diff(outcome{Add: 1, First: 2, State: expRunning, Reason: runReason}, outcomeOf(a)); diff != "" {
		t.Fatalf("after the restart (-want +got):\n%s", diff)
	}
	exp.Status = a.status
	a = plan(exp, trialsIn(succeeded, succeeded, failed), findings{}, noon)
	if got := outcomeOf(a); got.State != expDone || got.Reason != maxReason {
		t.Fatalf("at the end: %+v", got)
	}
	var types []string
	for _, c := range a.status.Conditions {
		types = append(types, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	want := []string{"Created=True", "Restarting=True", "Running=False", "Succeeded=True"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestBest(t *testing.T) {
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		want   string
	}{
		"the smallest is best when minimizing":             {anExperiment(), []*v1beta1.Trial{loss1(0, "2"), loss1(1, "1"), loss1(2, "3")}, "exp-0001"},
		"the largest is best when maximizing":              {anExperiment(maximize), []*v1beta1.Trial{loss1(0, "2"), loss1(1, "1"), loss1(2, "3")}, "exp-0002"},
		"minimizing looks at the minimum":                  {anExperiment(), []*v1beta1.Trial{measured(0, "1", "9", "9"), measured(1, "2", "2", "2")}, "exp-0000"},
		"maximizing looks at the maximum":                  {anExperiment(maximize), []*v1beta1.Trial{measured(0, "1", "9", "1"), measured(1, "2", "2", "2")}, "exp-0000"},
		"the strategy latest looks at the end":             {anExperiment(strategy(v1beta1.ExtractByLatest)), []*v1beta1.Trial{measured(0, "1", "9", "9"), measured(1, "2", "2", "2")}, "exp-0001"},
		"the strategy max with minimize is odd but obeyed": {anExperiment(strategy(v1beta1.ExtractByMax)), []*v1beta1.Trial{measured(0, "1", "9", "9"), measured(1, "2", "2", "2")}, "exp-0001"},
		"a mean is where the trial's value is":             {anExperiment(strategy("mean-last-5")), []*v1beta1.Trial{valued(0, "3", "1"), valued(1, "2", "9")}, "exp-0001"},
		"the value at the best step, too":                  {anExperiment(strategy(v1beta1.ExtractByBestAtStep)), []*v1beta1.Trial{valued(0, "3", "1"), valued(1, "2", "9")}, "exp-0001"},
		"a mean that is not there falls back to latest":    {anExperiment(strategy("mean-last-5")), []*v1beta1.Trial{valued(0, "", "1"), valued(1, "2", "9")}, "exp-0000"},
		"an unavailable minimum falls back to latest":      {anExperiment(), []*v1beta1.Trial{measured(0, "unavailable", "unavailable", "1"), loss1(1, "2")}, "exp-0000"},
		"all unavailable is not best":                      {anExperiment(), []*v1beta1.Trial{measured(0, "unavailable", "unavailable", "unavailable")}, ""},
		"of equals the first is best":                      {anExperiment(), []*v1beta1.Trial{loss1(0, "1"), loss1(1, "1.0")}, "exp-0000"},
		"a trial without observation is not best":          {anExperiment(), trialsIn(succeeded), ""},
		"an early stopped trial can be best": {anExperiment(), func() []*v1beta1.Trial {
			pruned := loss1(0, "1")
			pruned.Status.Conditions = aTrial(0, earlyStop).Status.Conditions
			return []*v1beta1.Trial{pruned, loss1(1, "2")}
		}(), "exp-0000"},
		"exponents are numbers": {anExperiment(), []*v1beta1.Trial{loss1(0, "1e-3"), loss1(1, "0.002")}, "exp-0000"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := plan(tc.exp, tc.trials, findings{}, noon)
			if got := a.status.CurrentOptimalTrial.BestTrialName; got != tc.want {
				t.Errorf("best = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStatusIsBounded(t *testing.T) {
	trials := trialsIn(times(1200, succeeded)...)
	s := plan(anExperiment(func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = nil }), trials, findings{}, noon).status
	if s.Trials != 1200 || s.TrialsSucceeded != 1200 {
		t.Errorf("counts are %d and %d, want 1200", s.Trials, s.TrialsSucceeded)
	}
	if n := len(s.SucceededTrialList); n != listed {
		t.Fatalf("%d names, want %d", n, listed)
	}
	if got := s.SucceededTrialList[listed-1]; got != "exp-1199" {
		t.Errorf("the last name is %s, want the newest", got)
	}
}

func TestPlanChangesNothing(t *testing.T) {
	exp := anExperiment(goal(1), endedBy(maxReason), resume(v1beta1.LongRunning))
	trials := []*v1beta1.Trial{loss1(0, "0.5"), aTrial(1, running)}
	before, beforeTrials := exp.DeepCopy(), []*v1beta1.Trial{trials[0].DeepCopy(), trials[1].DeepCopy()}
	for _, f := range []findings{{}, {exhausted: true}, {fatal: "x"}, {trouble: "y"}} {
		plan(exp, trials, f, noon.Add(time.Hour))
	}
	if diff := cmp.Diff(before, exp); diff != "" {
		t.Errorf("the experiment was changed:\n%s", diff)
	}
	if diff := cmp.Diff(beforeTrials, trials); diff != "" {
		t.Errorf("the trials were changed:\n%s", diff)
	}
}

func TestTroubleIsShownAndTakenBack(t *testing.T) {
	exp := anExperiment()
	exp.Status = plan(exp, trialsIn(running), findings{trouble: "no ConfigMap"}, noon).status
	if c := exp.LastCondition(); c.Type != expRunning || c.Message != "no ConfigMap" || c.Status != corev1.ConditionTrue {
		t.Fatalf("the trouble is not shown: %+v", c)
	}
	exp.Status = plan(exp, trialsIn(running), findings{}, noon).status
	if c := exp.LastCondition(); c.Message != messageRunning {
		t.Errorf("the trouble stays: %+v", c)
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
		"a limit that was raised does not change what happened": {
			change: []func(*v1beta1.Experiment){maxFailed(5)}, later: []v1beta1.TrialConditionType{unmeasured, unmeasured},
			first: "0 trials failed and 1 has no metrics", after: "0 trials failed and 1 has no metrics"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			exp := anExperiment(maxFailed(1), parallel(2))
			exp.Status = plan(exp, trialsIn(unmeasured, running), findings{}, noon).status
			said := func(counts string) {
				t.Helper()
				want := begin + counts + " (maxFailedTrialCount is 1). The conditions of these trials say why"
				if c := exp.LastCondition(); c.Type != v1beta1.ExperimentFailed || c.Message != want {
					t.Errorf("%s: %q, want %q", c.Type, c.Message, want)
				}
			}
			said(tc.first)
			for _, f := range tc.change {
				f(exp)
			}
			before := exp.Status
			exp.Status = plan(exp, trialsIn(tc.later...), findings{}, noon.Add(time.Second)).status
			said(tc.after)
			if news := transitions(exp, &before, &exp.Status); len(news) > 0 {
				t.Errorf("events %v", news)
			}
		})
	}
	t.Run("another reason to fail is left alone", func(t *testing.T) {
		exp := anExperiment(maxFailed(1), parallel(2))
		exp.Status = plan(exp, trialsIn(running, running), findings{fatal: "no such algorithm"}, noon).status
		exp.Status = plan(exp, trialsIn(unmeasured, unmeasured), findings{}, noon).status
		if c := exp.LastCondition(); c.Message != "no such algorithm" {
			t.Errorf("%+v", c)
		}
	})
}
