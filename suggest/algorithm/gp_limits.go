package algorithm

import (
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// limit is a model whose value should be at most the bound.
type limit struct {
	model *gp.Model
	bound float64
	blur  float64
}

// limits are the models of what makes a trial useless: that it fails, and that
// it does not hold a constraint. kept are the positions of the measured trials
// that the models see. Models that cannot be made are left out.
func (q *question) limits(number int, kept []int) []limit {
	var out []limit
	if len(q.history.failed) > 0 {
		if l, ok := q.failure(number, kept); ok {
			out = append(out, l)
		}
	}
	for c := range q.study.Constraints {
		if l, ok := q.constraint(number, c, kept); ok {
			out = append(out, l)
		}
	}
	return out
}

// fewFailures is below how many failures, or successes, the model of failures
// keeps the mean of its prior.
const fewFailures = 3

// failure models whether trials fail, 1, or not, -1, around the mean of both
// (with Jeffreys' prior for the share of failures).
func (q *question) failure(number int, kept []int) (limit, bool) {
	failed := q.history.failed
	if len(failed) > modelled/2 {
		failed = failed[len(failed)-modelled/2:]
	}
	total := float64(len(q.history.measured) + len(q.history.failed))
	mean := 2*(0.5+float64(len(q.history.failed)))/(1+total) - 1
	s := sample{role: "failure", results: len(q.history.measured) + len(q.history.failed)}
	var rows [][]float64
	var labels []float64
	for _, i := range kept {
		rows, labels = append(rows, q.history.measured[i].x), append(labels, -1-mean)
	}
	for _, o := range failed {
		rows, labels = append(rows, o.x), append(labels, 1-mean)
	}
	s.rows, s.outcomes, s.weights = distinct(rows, labels)
	theta := gp.NewPrior(len(q.layout.Dims()), false).Theta().Rounded()
	if min(len(q.history.failed), len(kept)) >= fewFailures {
		theta = q.theta(s, number)
	}
	m, ok := q.model(s, theta, q.running)
	return limit{model: m, bound: -mean, blur: 0.1}, ok
}

// constraint models how far the c-th constraint is violated, on a scale that is
// logarithmic far from its bound.
func (q *question) constraint(number, c int, kept []int) (limit, bool) {
	var rows [][]float64
	var values []float64
	for _, i := range kept {
		if o := q.history.measured[i]; o.violations != nil && !math.IsInf(o.violations[c], 0) {
			rows, values = append(rows, o.x), append(values, o.violations[c])
		}
	}
	if len(rows) < 3 {
		return limit{}, false
	}
	bound := bilog(values)
	s := sample{role: "constraint" + strconv.Itoa(c), results: len(q.history.measured)}
	s.rows, s.outcomes, s.weights = distinct(rows, values)
	theta := q.theta(s, number)
	m, ok := q.model(s, theta, q.running)
	return limit{model: m, bound: bound, blur: 1e-6}, ok
}

// bilog brings values to the scale sign(v) log(1+|v|/median|v|), with mean 0
// and variance 1 (the bilog transform of Eriksson and Poloczek, "Scalable
// constrained Bayesian optimization", AISTATS 2021), and gives the place of 0.
func bilog(values []float64) (zero float64) {
	sizes := make([]float64, len(values))
	for i, v := range values {
		sizes[i] = math.Abs(v)
	}
	slices.Sort(sizes)
	scale := sizes[len(sizes)/2]
	if scale == 0 {
		scale = math.Max(sizes[len(sizes)-1], math.SmallestNonzeroFloat64)
	}
	mean, variance := 0.0, 0.0
	for i, v := range values {
		values[i] = math.Copysign(math.Log1p(math.Abs(v)/scale), v)
		mean += values[i] / float64(len(values))
	}
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values))
	}
	deviation := math.Sqrt(variance)
	if deviation < 1e-9 {
		deviation = 1
	}
	for i, v := range values {
		values[i] = (v - mean) / deviation
	}
	return -mean / deviation
}
