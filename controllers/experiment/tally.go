package experiment

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// unavailable is the API's word for a value that was never reported.
const unavailable = "unavailable"

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

// best is the trial with the best objective; nil when no trial has one that is
// a finite number. Of equals the one with the lowest number wins, so that the
// answer does not change when a later trial only draws level.
func best(obj *v1beta1.ObjectiveSpec, trials []*v1beta1.Trial) (trial *v1beta1.Trial, value float64) {
	for _, t := range trials {
		state := stateOf(t)
		if state != v1beta1.TrialSucceeded && state != v1beta1.TrialEarlyStopped {
			continue
		}
		v, ok := objectiveValue(obj, t.Status.Observation)
		if ok && (trial == nil || loss(obj, v) < loss(obj, value)) {
			trial, value = t, v
		}
	}
	return trial, value
}

// loss is smaller when value is better.
func loss(obj *v1beta1.ObjectiveSpec, value float64) float64 {
	if obj.Type == v1beta1.ObjectiveTypeMaximize {
		return -value
	}
	return value
}

// objectiveValue picks the objective from an observation by the objective's
// strategy. ok is false when it was not measured or is not a finite number.
func objectiveValue(obj *v1beta1.ObjectiveSpec, o *v1beta1.Observation) (value float64, ok bool) {
	if o == nil {
		return 0, false
	}
	for _, m := range o.Metrics {
		if m.Name != obj.ObjectiveMetricName {
			continue
		}
		text := m.Latest
		switch strategyOf(obj) {
		case v1beta1.ExtractByMin:
			text = m.Min
		case v1beta1.ExtractByMax:
			text = m.Max
		case v1beta1.ExtractByLatest:
		default:
			text = m.Value
		}
		if text == unavailable || text == "" {
			text = m.Latest
		}
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return 0, false
}

// strategyOf is how the objective's points become one value: as the user says,
// else by the objective's direction.
func strategyOf(obj *v1beta1.ObjectiveSpec) v1beta1.MetricStrategyType {
	for _, s := range obj.MetricStrategies {
		if s.Name == obj.ObjectiveMetricName && s.Value != "" {
			return s.Value
		}
	}
	if obj.Type == v1beta1.ObjectiveTypeMaximize {
		return v1beta1.ExtractByMax
	}
	return v1beta1.ExtractByMin
}

func goalReached(obj *v1beta1.ObjectiveSpec, value float64) bool {
	return obj.Goal != nil && loss(obj, value) <= loss(obj, *obj.Goal)
}
