package experiment

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// listed is how many trial names a list of the status holds at most.
const listed = 500

// stateOf is the last condition that holds. A trial without one was just made.
func stateOf(t *v1beta1.Trial) v1beta1.TrialConditionType {
	for i := len(t.Status.Conditions) - 1; i >= 0; i-- {
		if c := t.Status.Conditions[i]; c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return v1beta1.TrialCreated
}

func ended(state v1beta1.TrialConditionType) bool {
	return state != v1beta1.TrialCreated && state != v1beta1.TrialRunning
}

// tally is the trials by state, each list in order of number.
type tally struct {
	names map[v1beta1.TrialConditionType][]string
	total int
}

func count(trials []*v1beta1.Trial) tally {
	c := tally{names: map[v1beta1.TrialConditionType][]string{}, total: len(trials)}
	for _, t := range trials {
		state := stateOf(t)
		c.names[state] = append(c.names[state], t.Name)
	}
	return c
}

func (c tally) n(states ...v1beta1.TrialConditionType) int {
	sum := 0
	for _, s := range states {
		sum += len(c.names[s])
	}
	return sum
}

func (c tally) active() int { return c.n(v1beta1.TrialCreated, v1beta1.TrialRunning) }

func (c tally) completed() int { return c.total - c.active() }

// bad counts what maxFailedTrialCount is compared with.
func (c tally) bad() int { return c.n(v1beta1.TrialFailed, v1beta1.TrialMetricsUnavailable) }

// write puts the counts and the bounded lists into a status.
func (c tally) write(s *v1beta1.ExperimentStatus) {
	newest := func(state v1beta1.TrialConditionType) ([]string, int32) {
		all := c.names[state]
		return all[max(0, len(all)-listed):], int32(len(all))
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
