package experiment

import (
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// standing is how the trials of an experiment compare.
type standing struct {
	// top is the best trial by the main objective; nil when no trial counts.
	top *v1beta1.Trial
	// front are, of several objectives, the trials that none beats. Nil for one.
	front []*v1beta1.Trial
	// reached: a trial has reached every goal that is given.
	reached bool
}

// ranked is a trial that counts, with what it lost in each objective.
type ranked struct {
	trial  *v1beta1.Trial
	losses []float64
}

// compare ranks trials, which are in order of number. A trial counts when it has a
// finite value in each objective and meets the constraints. Of equals the first
// stays, so that the answer does not change when a later trial only draws level.
func compare(spec *v1beta1.ExperimentSpec, trials []*v1beta1.Trial) standing {
	objectives := spec.AllObjectives()
	if len(objectives) == 0 {
		return standing{}
	}
	var s standing
	var top ranked
	var front []ranked
	for _, t := range trials {
		if state := stateOf(t); state != v1beta1.TrialSucceeded && state != v1beta1.TrialEarlyStopped {
			continue
		}
		values, ok := objectiveValues(spec.Objective, objectives, t.Status.Observation)
		if !ok || !feasible(spec, t.Status.Observation) {
			continue
		}
		r := ranked{t, losses(objectives, values)}
		s.reached = s.reached || goalsReached(objectives, r.losses)
		// Of those that lead in the main objective none that another one beats in
		// the rest is the best.
		if top.trial == nil || slices.Compare(r.losses, top.losses) < 0 {
			top = r
		}
		if len(objectives) > 1 {
			front = admit(front, r)
		}
	}
	s.top = top.trial
	for _, r := range front {
		s.front = append(s.front, r.trial)
	}
	return s
}

// write puts the best trials into a status.
func (s standing) write(status *v1beta1.ExperimentStatus) {
	status.CurrentOptimalTrial, status.ParetoTrialList = v1beta1.OptimalTrial{}, nil
	if s.top != nil {
		status.CurrentOptimalTrial = optimal(s.top)
	}
	for _, t := range s.front[max(0, len(s.front)-listed):] {
		status.ParetoTrialList = append(status.ParetoTrialList, t.Name)
	}
}

func optimal(t *v1beta1.Trial) v1beta1.OptimalTrial {
	return v1beta1.OptimalTrial{
		BestTrialName:        t.Name,
		ParameterAssignments: t.Spec.ParameterAssignments,
		Observation:          *t.Status.Observation.DeepCopy(),
	}
}

// admit adds r to a front unless a member is as good in all objectives, and takes
// out those that r beats.
func admit(front []ranked, r ranked) []ranked {
	for _, m := range front {
		if noWorse(m.losses, r.losses) {
			return front
		}
	}
	return append(slices.DeleteFunc(front, func(m ranked) bool { return noWorse(r.losses, m.losses) }), r)
}

func noWorse(a, b []float64) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

func losses(objectives []v1beta1.ObjectiveMetric, values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = loss(objectives[i].Type, v)
	}
	return out
}

// loss is smaller when value is better.
func loss(direction v1beta1.ObjectiveType, value float64) float64 {
	if direction == v1beta1.ObjectiveTypeMaximize {
		return -value
	}
	return value
}

// goalsReached says whether losses reach each goal, of which there is one at
// least.
func goalsReached(objectives []v1beta1.ObjectiveMetric, losses []float64) bool {
	given := false
	for i, o := range objectives {
		if o.Goal == nil {
			continue
		}
		given = true
		if losses[i] > loss(o.Type, *o.Goal) {
			return false
		}
	}
	return given
}

// feasible says whether an observation meets the constraints. What was not
// measured does not.
func feasible(spec *v1beta1.ExperimentSpec, o *v1beta1.Observation) bool {
	for _, c := range spec.Constraints {
		if v, ok := boundedValue(spec, &c, o); !ok || c.Outside(v) > 0 {
			return false
		}
	}
	return true
}

// boundedValue is the value of a metric with a bound.
func boundedValue(spec *v1beta1.ExperimentSpec, c *v1beta1.MetricConstraint, o *v1beta1.Observation) (v float64, ok bool) {
	return value(o, c.MetricName, spec.Objective.Strategy(c.MetricName, v1beta1.ExtractByLatest))
}

// objectiveValues picks the objectives from an observation, each by its strategy.
// ok is false when one was not measured or is not a finite number.
func objectiveValues(main *v1beta1.ObjectiveSpec, objectives []v1beta1.ObjectiveMetric, o *v1beta1.Observation) (values []float64, ok bool) {
	for _, want := range objectives {
		v, ok := value(o, want.ObjectiveMetricName, main.Strategy(want.ObjectiveMetricName, want.Type.DefaultStrategy()))
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	return values, len(values) > 0
}

// value picks a metric from an observation. ok is false when it was not measured
// or is not a finite number.
func value(o *v1beta1.Observation, metric string, by v1beta1.MetricStrategyType) (v float64, ok bool) {
	if o == nil {
		return 0, false
	}
	i := slices.IndexFunc(o.Metrics, func(m v1beta1.Metric) bool { return m.Name == metric })
	if i < 0 {
		return 0, false
	}
	v, err := strconv.ParseFloat(o.Metrics[i].By(by), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
