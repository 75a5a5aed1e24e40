package play

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
)

// judge follows what a player would recommend: the point with the best value
// that it has seen, and what that point is truly worth.
type judge struct {
	problem *problem.Problem
	seen    int
	best    float64
	path    Path
	front   [][]float64
}

func newJudge(p *problem.Problem) *judge {
	j := &judge{problem: p, best: math.Inf(1)}
	if p.Front != nil {
		j.path = Path{{At: 0, Loss: 1}}
	}
	return j
}

// see takes note of an evaluation.
func (j *judge) see(p suggest.Point, o problem.Outcome) {
	j.seen++
	if j.problem.Front != nil {
		j.seeFront(o)
		return
	}
	if o.Failed || !(o.Values[0] < j.best) {
		return
	}
	j.best = o.Values[0]
	truth := o.Values[0]
	if j.problem.Noise != nil {
		truth = j.problem.Truth(p).Values[0]
	}
	j.path = append(j.path, Step{At: float64(j.seen), Loss: truth})
}

// seeStep takes note of a step of a training, when so much had been paid in all.
// What is recommended is the point with the lowest value on its curve so far,
// and its worth is that of its full training. Points whose training diverges in
// the end are never recommended, whoever plays.
func (j *judge) seeStep(p suggest.Point, value, cost float64) {
	if !(value < j.best) {
		return
	}
	o := j.problem.Truth(p)
	if o.Failed {
		return
	}
	j.best = value
	truth := o.Values[0]
	if n := len(j.path); n > 0 && j.path[n-1].Loss == truth {
		return
	}
	j.path = append(j.path, Step{At: cost, Loss: truth})
}

// seeFront takes note of an evaluation with several objectives. The loss is the
// share of the hypervolume of the true front that is missing.
func (j *judge) seeFront(o problem.Outcome) {
	if o.Failed || slices.ContainsFunc(o.Constraints, func(c float64) bool { return c > 0 }) {
		return
	}
	for _, v := range j.front {
		if dominates(v, o.Values) {
			return
		}
	}
	j.front = slices.DeleteFunc(j.front, func(v []float64) bool { return dominates(o.Values, v) })
	j.front = append(j.front, o.Values)
	f := j.problem.Front
	loss := 1 - problem.Hypervolume(j.front, f.Reference)/f.Volume()
	if n := len(j.path); n == 0 || loss < j.path[n-1].Loss {
		j.path = append(j.path, Step{At: float64(j.seen), Loss: loss})
	}
}

// dominates says whether a is nowhere worse than b.
func dominates(a, b []float64) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}
