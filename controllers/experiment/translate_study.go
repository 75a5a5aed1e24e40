package experiment

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/suggest"
)

// study is what is known of an experiment, without the curves.
func (m *searcher) study(exp *v1beta1.Experiment, trials []*v1beta1.Trial) suggest.Study {
	s := suggest.Study{Space: m.space, Seed: seedOf(exp), Trials: make([]suggest.Trial, 0, len(trials))}
	for _, o := range exp.Spec.AllObjectives() {
		s.Objectives = append(s.Objectives, suggest.Objective{
			Name: o.ObjectiveMetricName, Direction: suggest.Direction(o.Type), Goal: o.Goal,
		})
	}
	for _, c := range exp.Spec.Constraints {
		s.Constraints = append(s.Constraints, suggest.Constraint{Name: c.MetricName, Min: c.Min, Max: c.Max})
	}
	if exp.Spec.MaxTrialCount != nil {
		s.Budget = int(*exp.Spec.MaxTrialCount)
	}
	if exp.Spec.ParallelTrialCount != nil {
		s.Parallel = int(*exp.Spec.ParallelTrialCount)
	}
	for _, i := range exp.Spec.InitialTrials {
		if p, ok := pointOf(m.words, i.ParameterAssignments); ok {
			s.Initial = append(s.Initial, p)
		}
	}
	for _, t := range trials {
		n, ok := t.Number()
		if !ok {
			continue // made by hand, and not ours to learn from
		}
		s.Trials = append(s.Trials, trialOf(&exp.Spec, m.words, t, n))
	}
	return s
}

func trialOf(spec *v1beta1.ExperimentSpec, words wording, t *v1beta1.Trial, n int) suggest.Trial {
	out := suggest.Trial{Number: n, State: searchState(stateOf(t))}
	out.Point, _ = pointOf(words, t.Spec.ParameterAssignments)
	if text := t.Annotations[v1beta1.AnnotationMeta]; text != "" {
		// What cannot be read was not written by us: the algorithm does without.
		_ = json.Unmarshal([]byte(text), &out.Meta)
	}
	if text := t.Annotations[v1beta1.AnnotationResource]; text != "" {
		out.Resource, _ = strconv.ParseFloat(text, 64) // the same
	}
	objectives := spec.AllObjectives()
	if len(objectives) == 0 || out.State != suggest.Succeeded && out.State != suggest.Pruned {
		return out
	}
	values, ok := objectiveValues(spec.Objective, objectives, t.Status.Observation)
	switch {
	case ok:
		out.Values, out.Constraints = values, constrained(spec, t.Status.Observation)
	case out.State == suggest.Succeeded:
		// It ran to its end, but what it reported is no finite number.
		out.State = suggest.Unmeasured
	}
	return out
}

// constrained is what was measured for the constraints, NaN where nothing was.
func constrained(spec *v1beta1.ExperimentSpec, o *v1beta1.Observation) []float64 {
	var out []float64
	for _, c := range spec.Constraints {
		v, ok := boundedValue(spec, &c, o)
		if !ok {
			v = math.NaN()
		}
		out = append(out, v)
	}
	return out
}

// warmTrials are the finished trials of another experiment, judged as spec judges:
// those that ran to their end, with all of the resource where some had less, and
// whose points lie in the space. outside is how many do not.
func (m *searcher) warmTrials(spec *v1beta1.ExperimentSpec, study string, trials []*v1beta1.Trial) (out []suggest.Trial, outside int) {
	whole := 0.0
	for _, t := range trials {
		n, ok := t.Number()
		if !ok {
			continue
		}
		one := trialOf(spec, m.words, t, n)
		if one.State != suggest.Succeeded {
			continue
		}
		whole = max(whole, one.Resource)
		if len(one.Point) == 0 || !m.space.Contains(one.Point) { // no algorithm makes anything of it
			outside++
			continue
		}
		one.Meta = suggest.Meta{"study": study}
		out = append(out, one)
	}
	out = slices.DeleteFunc(out, func(t suggest.Trial) bool { return t.Resource < whole })
	for i := range out {
		out[i].Resource = 0
	}
	return out, outside
}

func searchState(state v1beta1.TrialConditionType) suggest.State {
	switch state {
	case v1beta1.TrialRunning:
		return suggest.Running
	case v1beta1.TrialSucceeded:
		return suggest.Succeeded
	case v1beta1.TrialEarlyStopped:
		return suggest.Pruned
	case v1beta1.TrialFailed:
		return suggest.Failed
	case v1beta1.TrialMetricsUnavailable:
		return suggest.Unmeasured
	case v1beta1.TrialKilled:
		return suggest.Killed
	default:
		return suggest.Pending
	}
}

// seedOf is the experiment's seed, else a hash of its UID.
func seedOf(exp *v1beta1.Experiment) uint64 {
	if exp.Spec.Seed != nil {
		return uint64(*exp.Spec.Seed)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(exp.UID)) // never fails
	return h.Sum64()
}
