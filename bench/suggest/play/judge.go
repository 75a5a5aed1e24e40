package play

import (
	"math"

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
}

func newJudge(p *problem.Problem) *judge {
	return &judge{problem: p, best: math.Inf(1)}
}

// see takes note of an evaluation.
func (j *judge) see(p suggest.Point, o problem.Outcome) {
	j.seen++
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
