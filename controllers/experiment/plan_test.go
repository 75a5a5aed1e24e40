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
	"github.com/vernier-ml/vernier/controllers/study"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// planned is the plan for trials that are ranked anew.
func planned(exp *v1beta1.Experiment, trials []*v1beta1.Trial, f findings, now time.Time) actions {
	return plan(exp, trials, study.Rank(&exp.Spec, trials), f, now)
}

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
			trialsIn(times(100, succeeded)...), findings{},
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
			got := outcomeOf(planned(tc.exp, tc.trials, tc.found, noon))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// queued is a trial whose job has been suspended since at.
func queued(n int, says string, at time.Time) *v1beta1.Trial {
	t := aTrial(n, created)
	t.MarkRunning("Trial is running. "+says+": it is suspended", metav1.NewTime(at))
	return t
}

func TestTrialsInAQueueLeaveTheirPlaces(t *testing.T) {
	long, now := noon.Add(-time.Hour), noon.Add(-20*time.Second)
	tests := map[string]struct {
		exp    *v1beta1.Experiment
		trials []*v1beta1.Trial
		add    int
		after  time.Duration
	}{
		"for a minute they keep them": {
			anExperiment(), []*v1beta1.Trial{aTrial(0, running), queued(1, v1beta1.QueuedSays, now), queued(2, v1beta1.QueuedSays, now)}, 0, 40 * time.Second},
		"then others are made": {
			anExperiment(), []*v1beta1.Trial{aTrial(0, running), queued(1, v1beta1.QueuedSays, long), queued(2, v1beta1.QueuedSays, now)}, 1, 40 * time.Second},
		"those that were preempted leave theirs as well": {
			anExperiment(), []*v1beta1.Trial{aTrial(0, running), aTrial(1, running), queued(2, v1beta1.PreemptedSays, long)}, 1, 0},
		"a queue that takes none gets twice as many as run at once": {
			anExperiment(parallel(2)), []*v1beta1.Trial{queued(0, v1beta1.QueuedSays, long), queued(1, v1beta1.QueuedSays, long), queued(2, v1beta1.QueuedSays, long)}, 1, 0},
		"and no more": {
			anExperiment(parallel(2)), []*v1beta1.Trial{queued(0, v1beta1.QueuedSays, long), queued(1, v1beta1.QueuedSays, long), queued(2, v1beta1.QueuedSays, long), queued(3, v1beta1.QueuedSays, long)}, 0, 0},
		"they count against maxTrialCount": {
			anExperiment(maxTrials(3)), []*v1beta1.Trial{queued(0, v1beta1.QueuedSays, long), queued(1, v1beta1.QueuedSays, long)}, 1, 0},
		"when all run at last, nothing is made or stopped": {
			anExperiment(parallel(2)), trialsIn(running, running, running, running), 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := planned(tc.exp, tc.trials, findings{}, noon)
			if a.add != tc.add || a.after != tc.after || len(a.stop) > 0 {
				t.Errorf("the plan makes %d, stops %d and looks again after %v; want %d, none and %v", a.add, len(a.stop), a.after, tc.add, tc.after)
			}
		})
	}
}

// They enter and leave it while they run, and nothing else looks at the clock then.
func TestAQueueIsNews(t *testing.T) {
	runs, waits, again := aTrial(0, running), queued(0, v1beta1.QueuedSays, noon), queued(0, v1beta1.PreemptedSays, noon)
	if !stateChanged(runs, waits) || !stateChanged(waits, runs) || !stateChanged(waits, again) || stateChanged(waits, waits.DeepCopy()) {
		t.Error("it does not wake the experiment, or always")
	}
}

func TestStatusIsBounded(t *testing.T) {
	trials := trialsIn(times(1200, succeeded)...)
	s := planned(anExperiment(func(e *v1beta1.Experiment) { e.Spec.MaxTrialCount = nil }), trials, findings{}, noon).status
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
		planned(exp, trials, f, noon.Add(time.Hour))
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
	exp.Status = planned(exp, trialsIn(running), findings{trouble: "no ConfigMap"}, noon).status
	if c := exp.LastCondition(); c.Type != expRunning || c.Message != "no ConfigMap" || c.Status != corev1.ConditionTrue {
		t.Fatalf("the trouble is not shown: %+v", c)
	}
	exp.Status = planned(exp, trialsIn(running), findings{}, noon).status
	if c := exp.LastCondition(); c.Message != messageRunning {
		t.Errorf("the trouble stays: %+v", c)
	}
}
