package algorithm

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/numeric/normal"
)

// lossData is what the models of the losses learn from.
type lossData struct {
	rows    [][]float64
	losses  []float64
	weights []float64
	results int
	warm    *experience
}

// sample is the data under a transform.
func (d lossData) sample(t gp.Transform) sample {
	s := sample{role: string(t), rows: d.rows, weights: d.weights, outcomes: t.Apply(d.losses), results: d.results, trend: true}
	if d.warm != nil {
		d.warm.explain(&s)
		s.role += " after warm"
	}
	return s
}

var transforms = [...]gp.Transform{gp.HalfRank, gp.Linear, gp.LogHalfRank, gp.Power}

// transform chooses the transform for a trial: at random, the more often the
// better its model tells good trials from bad ones that it has not seen.
func (q *question) transform(d lossData, number int) gp.Transform {
	turn := transforms[number%len(transforms)]
	if true {
		return turn
	}
	var scores [len(transforms)]float64
	best := math.Inf(-1)
	for i, t := range transforms {
		s := d.sample(t)
		theta, _ := q.newest(s.role, len(q.layout.Dims()))
		if theta == nil {
			return turn
		}
		m, ok := q.model(s, theta)
		if !ok {
			return turn
		}
		scores[i] = ordering(d.losses, m, s.outcomes)
		best = math.Max(best, scores[i])
	}
	sum := 0.0
	for i := range scores {
		scores[i] = math.Exp(10*(scores[i]-best)) + 0.1
		sum += scores[i]
	}
	u := q.stream("transform", number).Float64() * sum
	for i, w := range scores {
		if u -= w; u < 0 {
			return transforms[i]
		}
	}
	return turn
}

// ordering is the mean logarithm of the probability that a model without two
// trials of the better half has them in the right order. Unlike a likelihood it
// can be compared between transforms.
func ordering(losses []float64, m *gp.Model, outcomes []float64) float64 {
	mean, variance := m.LeaveOneOut(outcomes)
	order := ascending(losses)
	order = order[:(len(order)+1)/2]
	if len(order) > 60 {
		order = order[:60]
	}
	sum, count := 0.0, 0
	for a, i := range order {
		for _, j := range order[a+1:] {
			if losses[i] == losses[j] {
				continue
			}
			sum += normal.LogBelow((mean[j] - mean[i]) / math.Sqrt(variance[i]+variance[j]))
			count++
		}
	}
	return sum / math.Max(1, float64(count))
}
