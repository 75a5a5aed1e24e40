package study

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
)

// Ranking is how the trials of an experiment compare. A trial is ranked when it
// succeeded or was stopped early, has a finite value in each objective, and meets
// the constraints.
type Ranking struct {
	objectives  []suggest.Objective
	constraints []suggest.Constraint

	trials  *history
	seen    []*suggest.Trial // that the ranking was made of, in order of number
	top     ranked
	front   []ranked // in order of number; for several objectives only
	reached bool
	// recommended is by a model (Study.Recommend), and stale says that trials have
	// changed since.
	recommended *v1beta1.RecommendedTrial
	stale       bool
}

// ranked is a trial that is ranked, with its loss in each objective.
type ranked struct {
	trial  *suggest.Trial
	losses []float64
}

// Rank compares trials, which are in order of number.
func Rank(spec *v1beta1.ExperimentSpec, trials []*v1beta1.Trial) *Ranking {
	h, r := &history{spec: spec}, newRanking(spec)
	h.update(trials)
	r.update(h)
	return r
}

func newRanking(spec *v1beta1.ExperimentSpec) *Ranking {
	return &Ranking{objectives: objectivesOf(spec), constraints: constraintsOf(spec)}
}

// Best is the best trial by the first objective; of equals the one that is best in
// the others, then the first. Where no trial is ranked, it is the last one whose
// objective is a text, as the Genotype of DARTS is; nil when there is none.
func (r *Ranking) Best() *v1beta1.Trial {
	if r.top.trial != nil {
		return r.trials.object(r.top.trial)
	}
	if r.trials == nil {
		return nil
	}
	for _, e := range slices.Backward(r.trials.entries) {
		if e.object.IsSucceeded() && objectiveIsText(r.trials.spec, e.object.Status.Observation) {
			return e.object
		}
	}
	return nil
}

func objectiveIsText(spec *v1beta1.ExperimentSpec, o *v1beta1.Observation) bool {
	if o == nil || spec.Objective == nil {
		return false
	}
	return slices.ContainsFunc(o.Metrics, func(m v1beta1.Metric) bool {
		if m.Name != spec.Objective.ObjectiveMetricName || m.Latest == "" || m.Latest == collector.Unavailable {
			return false
		}
		_, err := strconv.ParseFloat(m.Latest, 64)
		return errors.Is(err, strconv.ErrSyntax)
	})
}

// Front names, of several objectives, the newest n trials that no other beats, in
// order of number; of equals the first. Nil for one objective.
func (r *Ranking) Front(n int) (names []string) {
	for _, m := range r.front[max(0, len(r.front)-n):] {
		names = append(names, r.trials.object(m.trial).Name)
	}
	return names
}

// Recommended is what Study.Recommend said last; nil when it said nothing.
func (r *Ranking) Recommended() *v1beta1.RecommendedTrial { return r.recommended }

// Reached says whether a trial has reached every goal that is given.
func (r *Ranking) Reached() bool { return r.reached }

// update follows the trials. New results join the ranking; only when one that was
// ranked has changed or gone is the ranking made anew.
func (r *Ranking) update(h *history) {
	r.stale = true
	added, ok := r.added(h.current)
	r.trials, r.seen = h, h.current
	if !ok {
		r.rebuild()
		return
	}
	for _, m := range added {
		r.add(m)
	}
}

// added are the results that trials have beside those seen. ok is false when a
// result is no longer there.
func (r *Ranking) added(trials []*suggest.Trial) (added []ranked, ok bool) {
	old := r.seen
	for _, t := range trials {
		for len(old) > 0 && old[0].Number < t.Number {
			if _, lost := r.rank(old[0]); lost {
				return nil, false
			}
			old = old[1:]
		}
		if len(old) > 0 && old[0] == t {
			old = old[1:]
			continue
		}
		if len(old) > 0 && old[0].Number == t.Number {
			was, counted := r.rank(old[0])
			if is, _ := r.rank(t); counted && !slices.Equal(was.losses, is.losses) {
				return nil, false
			} else if old = old[1:]; counted {
				continue
			}
		}
		if m, ok := r.rank(t); ok {
			added = append(added, m)
		}
	}
	return added, !slices.ContainsFunc(old, func(t *suggest.Trial) bool { _, lost := r.rank(t); return lost })
}

// rank is a trial's place in the comparison; ok is false when it has none.
func (r *Ranking) rank(t *suggest.Trial) (m ranked, ok bool) {
	if len(r.objectives) == 0 || len(t.Values) != len(r.objectives) || len(t.Constraints) != len(r.constraints) {
		return m, false
	}
	for i, c := range r.constraints {
		if c.Violation(t.Constraints[i]) > 0 {
			return m, false
		}
	}
	m = ranked{t, make([]float64, len(t.Values))}
	for i, o := range r.objectives {
		m.losses[i] = o.Loss(t.Values[i])
	}
	return m, true
}

func (r *Ranking) rebuild() {
	r.top, r.front, r.reached = ranked{}, nil, false
	var all []ranked
	for _, t := range r.seen {
		if m, ok := r.rank(t); ok {
			all = append(all, m)
			r.lead(m)
		}
	}
	if len(r.objectives) < 2 {
		return
	}
	slices.SortFunc(all, before)
	all = slices.CompactFunc(all, func(a, b ranked) bool { return slices.Equal(a.losses, b.losses) })
	points := make([][]float64, len(all))
	for i, m := range all {
		points[i] = m.losses
	}
	for _, i := range pareto.Front(points) {
		r.front = append(r.front, all[i])
	}
	slices.SortFunc(r.front, byNumber)
}

func (r *Ranking) add(m ranked) {
	r.lead(m)
	if len(r.objectives) < 2 || slices.ContainsFunc(r.front, func(o ranked) bool { return beats(o, m) }) {
		return
	}
	r.front = slices.DeleteFunc(r.front, func(o ranked) bool { return beats(m, o) })
	at, _ := slices.BinarySearchFunc(r.front, m, byNumber)
	r.front = slices.Insert(r.front, at, m)
}

func (r *Ranking) lead(m ranked) {
	if r.top.trial == nil || before(m, r.top) < 0 {
		r.top = m
	}
	given, reached := false, true
	for i, o := range r.objectives {
		if o.Goal != nil {
			given, reached = true, reached && o.Reached(m.trial.Values[i])
		}
	}
	r.reached = r.reached || given && reached
}

// before orders results from the best by the first objective on, so that the first
// is on the front.
func before(a, b ranked) int {
	return cmp.Or(slices.Compare(a.losses, b.losses), byNumber(a, b))
}

func byNumber(a, b ranked) int { return cmp.Compare(a.trial.Number, b.trial.Number) }

// beats says whether a keeps b from the front: it is nowhere worse, and better
// somewhere or first.
func beats(a, b ranked) bool {
	for i := range a.losses {
		if a.losses[i] > b.losses[i] {
			return false
		}
	}
	return a.trial.Number < b.trial.Number || !slices.Equal(a.losses, b.losses)
}
