package experiment

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// Messages of the conditions; the first words are Katib's.
const (
	messageCreated       = "Experiment is created"
	messageOutside       = messageCreated + ". It has no trialTemplate, so no job runs its trials: they run outside, in programs that ask the API for them (docs/api.md)"
	messageRunning       = "Experiment is running"
	messageRestarting    = "Experiment is restarting"
	messageGoalReached   = "Experiment has succeeded because Objective goal has reached"
	messageMaxTrials     = "Experiment has succeeded because max trial count has reached"
	messageMaxDuration   = "Experiment has succeeded because max duration of %s has reached"
	messageMaxGPUHours   = "Experiment has succeeded because its trials have used its %g GPU hours"
	messageNoResult      = "Experiment has failed because no trial had a result within its %s, %v"
	messageSuspended     = "No new trials are made: the experiment is suspended (spec.suspend). Trials that run go on"
	messageStopping      = "No new trials are made: the experiment was stopped (" + v1beta1.AnnotationEnd + "). It ends when the trials that run have ended"
	messageStopped       = "Experiment has ended because it was stopped after %d trials"
	messageStoppedEmpty  = "Experiment has failed because it was stopped before a trial had a result"
	messageSuggestionEnd = "Experiment has succeeded because the algorithm has nothing left to try after %d trials"
	messageSlow          = messageRunning + ". The last %d trials have failed, so " + v1beta1.MessageSlow + v1beta1.NewestSays + "%s"
	messageInARow        = v1beta1.MessageMaxFailed + ": the last %d trials have all failed, so something is wrong with more than their parameters. Set maxFailedTrialCount to allow more" + v1beta1.NewestSays + "%s"
	messageAllFailed     = v1beta1.MessageMaxFailed + ": all %d trials have failed" + v1beta1.NewestSays + "%s"
	messageFailures      = v1beta1.MessageMaxFailed + ": %s failed and %s no metrics (maxFailedTrialCount is %d). The conditions of these trials say why"
	messageAbandoned     = "the experiment was stopped, and the trial has no worker"
	messageStop          = "the experiment has ended: %s"
)

// createdMessage is what an experiment says before its first trial.
func createdMessage(exp *v1beta1.Experiment) string {
	if exp.RunsOutside() {
		return messageOutside
	}
	return messageCreated
}

// say changes the message of a condition and leaves its place in the list.
func say(exp *v1beta1.Experiment, kind v1beta1.ExperimentConditionType, message string, now metav1.Time) {
	if c := exp.Condition(kind); c != nil && c.Message != message {
		c.Message, c.LastUpdateTime = message, now
	}
}

// differs says whether want is worth a write, and whether that write can wait
// because the conditions are the same.
func differs(have, want *v1beta1.ExperimentStatus) (differ, canWait bool) {
	a, b := *have, *want
	a.LastReconcileTime, b.LastReconcileTime = nil, nil
	if equality.Semantic.DeepEqual(a, b) {
		return false, false
	}
	return true, equality.Semantic.DeepEqual(a.Conditions, b.Conditions)
}

// listed is how many trial names a list of the status holds at most.
const listed = 500

// counts is the trials by state.
type counts struct {
	states []inState
	total  int
}

// inState is how many trials are in a state, and the names of the newest ones, the
// newest first.
type inState struct {
	state  v1beta1.TrialConditionType
	n      int
	newest []string
}

func count(trials []*v1beta1.Trial) counts {
	c := counts{total: len(trials)}
	for _, t := range slices.Backward(trials) {
		s := c.of(t.State())
		if s.n++; s.n <= listed {
			s.newest = append(s.newest, t.Name)
		}
	}
	return c
}

func (c *counts) of(state v1beta1.TrialConditionType) *inState {
	for i := range c.states {
		if c.states[i].state == state {
			return &c.states[i]
		}
	}
	c.states = append(c.states, inState{state: state})
	return &c.states[len(c.states)-1]
}

func (c counts) n(states ...v1beta1.TrialConditionType) int {
	sum := 0
	for _, s := range c.states {
		if slices.Contains(states, s.state) {
			sum += s.n
		}
	}
	return sum
}

func (c counts) active() int { return c.n(v1beta1.TrialCreated, v1beta1.TrialRunning) }

func (c counts) completed() int { return c.total - c.active() }

// bad counts what maxFailedTrialCount is compared with.
func (c counts) bad() int { return c.n(v1beta1.TrialFailed, v1beta1.TrialMetricsUnavailable) }

// write puts the counts and the bounded lists into a status.
func (c counts) write(s *v1beta1.ExperimentStatus) {
	newest := func(state v1beta1.TrialConditionType) ([]string, int32) {
		in := c.of(state)
		names := slices.Clone(in.newest)
		slices.Reverse(names)
		return names, int32(in.n)
	}
	s.Trials = int32(c.total)
	s.PendingTrialList, s.TrialsPending = newest(v1beta1.TrialCreated)
	s.RunningTrialList, s.TrialsRunning = newest(v1beta1.TrialRunning)
	s.SucceededTrialList, s.TrialsSucceeded = newest(v1beta1.TrialSucceeded)
	s.FailedTrialList, s.TrialsFailed = newest(v1beta1.TrialFailed)
	s.KilledTrialList, s.TrialsKilled = newest(v1beta1.TrialKilled)
	s.EarlyStoppedTrialList, s.TrialsEarlyStopped = newest(v1beta1.TrialEarlyStopped)
	s.MetricsUnavailableTrialList, s.TrialMetricsUnavailable = newest(v1beta1.TrialMetricsUnavailable)
}

func setBest(s *v1beta1.ExperimentStatus, r *study.Ranking) {
	s.CurrentOptimalTrial, s.ParetoTrialList, s.RecommendedTrial = v1beta1.OptimalTrial{}, r.Front(listed), r.Recommended()
	if t := r.Best(); t != nil {
		s.CurrentOptimalTrial = v1beta1.OptimalTrial{
			BestTrialName:        t.Name,
			ParameterAssignments: t.Spec.ParameterAssignments,
			Observation:          *t.Status.Observation.DeepCopy(),
		}
	}
}
