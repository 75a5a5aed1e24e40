package play

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
)

// judge follows what a player would recommend, and the true value of that point: the point
// with the best value seen so far, or what the player says.
type judge struct {
	problem *problem.Problem
	seen    int
	best    float64
	path    Path
	front   [][]float64

	truths      map[int]float64 // of trials that are noisy, by number
	visited     Path
	recommended bool // by the player, and from then on by no other
}

func newJudge(p *problem.Problem) *judge {
	j := &judge{problem: p, best: math.Inf(1), truths: map[int]float64{}}
	if p.Front != nil {
		j.path = Path{{0, 1}}
	}
	return j
}

// see notes an evaluation.
func (j *judge) see(c Candidate, o problem.Outcome) {
	j.seen++
	if j.problem.Front != nil {
		j.seeFront(o)
		return
	}
	if o.Failed {
		return
	}
	truth, noisy := o.Values[0], true
	switch {
	case o.Mean != nil:
		truth = *o.Mean
	case j.problem.Noise != nil:
		truth = j.problem.Truth(c.Point).Values[0]
	default:
		noisy = false
	}
	if noisy {
		j.truths[c.Number] = truth
		if n := len(j.visited); n == 0 || truth < j.visited[n-1][1] {
			j.visited = append(j.visited, [2]float64{float64(j.seen), truth})
		}
	}
	if o.Values[0] < j.best && !j.recommended {
		j.best = o.Values[0]
		j.path = append(j.path, [2]float64{float64(j.seen), truth})
	}
}

// recommend notes that the player holds the point of a noisy trial for the best one.
func (j *judge) recommend(number int) {
	j.recommended = true
	truth, ok := j.truths[number]
	if n := len(j.path); ok && (n == 0 || j.path[n-1][1] != truth) {
		j.path = append(j.path, [2]float64{float64(j.seen), truth})
	}
}

// seeStep notes a step of a training, when cost had been paid in all.
// What is recommended is the point with the lowest value on its curve so far. Of a curve
// that can be computed its worth is that of its full training, and points whose training
// diverges in the end are never recommended. A real training is worth its value there:
// that is the model that a user keeps.
func (j *judge) seeStep(p suggest.Point, value, cost float64) {
	if !(value < j.best) {
		return
	}
	truth := value
	if j.problem.Task == nil {
		o := j.problem.Truth(p)
		if o.Failed {
			return
		}
		truth = o.Values[0]
	}
	j.best = value
	if n := len(j.path); n == 0 || j.path[n-1][1] != truth {
		j.path = append(j.path, [2]float64{cost, truth})
	}
}

// seeFront notes an evaluation with several objectives. The loss is the
// share of the hypervolume of the true front that is missing.
func (j *judge) seeFront(o problem.Outcome) {
	if o.Failed || slices.ContainsFunc(o.Constraints, func(c float64) bool { return c > 0 }) {
		return
	}
	if slices.ContainsFunc(j.front, func(v []float64) bool { return pareto.Dominates(v, o.Values) || slices.Equal(v, o.Values) }) {
		return
	}
	j.front = slices.DeleteFunc(j.front, func(v []float64) bool { return pareto.Dominates(o.Values, v) })
	j.front = append(j.front, o.Values)
	f := j.problem.Front
	loss := 1 - pareto.Hypervolume(j.front, f.Reference)/f.Volume()
	if n := len(j.path); n == 0 || loss < j.path[n-1][1] {
		j.path = append(j.path, [2]float64{float64(j.seen), loss})
	}
}
