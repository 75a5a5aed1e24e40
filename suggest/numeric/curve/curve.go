// Package curve extrapolates learning curves.
//
// A curve is modelled as y(t) = v + a*h(t) + noise, where v is its level at the
// horizon R and h one of many shapes with h(R) = 0 and h = 1 at the first
// measurement: the families pow3 and pow4, exponential (Weibull, of which exp4
// is a case), ilog2, and MMF of Domhan, Springenberg and Hutter ("Speeding up
// automatic hyperparameter optimization of deep neural networks by extrapolation
// of learning curves", IJCAI 2015, table 1). Their shape parameters and the noise
// lie on a grid, and v and a are integrated out in closed form, so the Bayesian
// model average is exact where sampling or a Gaussian approximation of five
// parameters from five points is not.
package curve

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/normal"
)

// Curve is measured values at steps, ascending and not negative. The numbers are
// finite and, for accuracy, of a moderate size.
type Curve struct {
	Steps, Values []float64
}

// Model extrapolates to one horizon. It keeps the shapes' values at each step that
// it has met, so one Model for many curves is faster than one for each. It is not
// safe for use from several goroutines at once.
type Model struct {
	horizon float64
	shapes  []shape
	end     []float64             // of the shapes, at the horizon
	at      map[float64][]float64 // of the shapes, by step
}

// NewModel is for the values at the horizon, a step above 0.
func NewModel(horizon float64) *Model {
	m := &Model{horizon: horizon, shapes: shapes(), at: map[float64][]float64{}}
	m.end = m.values(horizon)
	return m
}

// values of all shapes at a step.
func (m *Model) values(step float64) []float64 {
	if known, ok := m.at[step]; ok {
		return known
	}
	out := make([]float64, len(m.shapes))
	for k, s := range m.shapes {
		out[k] = s.at(step, m.horizon)
	}
	m.at[step] = out
	return out
}

// Prior is what is believed before a curve is seen.
type Prior struct {
	// Mean and Deviation of the value at the horizon. Deviation is above 0.
	Mean, Deviation float64
	// Drop is the typical size of the difference between the first value and
	// that at the horizon, of any sign; above 0.
	Drop float64
	// Weights of the shapes, as Posterior.Shapes gives them. Nil: each family
	// is as likely as the others.
	Weights []float64
}

// Posterior is what is believed of the value at the horizon: a mixture of normal
// distributions.
type Posterior struct {
	parts  []part
	shapes []float64
}

type part struct{ weight, mean, deviation float64 }

// noises are the standard deviations of the noise, as parts of Drop.
var noises = [...]float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1}

// most is how many points of a curve are used; longer ones are averaged in
// groups.
const most = 40

// Extrapolate gives the posterior of the value at the horizon, its own noise
// included. Without points it is the prior.
func (m *Model) Extrapolate(c Curve, p Prior) Posterior {
	c, group := c.grouped()
	weights := p.Weights
	if weights == nil {
		weights = Equal()
	}
	post := Posterior{parts: make([]part, 0, len(m.shapes)*len(noises)), shapes: make([]float64, len(m.shapes))}
	if len(c.Steps) == 0 {
		post.parts = append(post.parts, part{weight: 1, mean: p.Mean, deviation: p.Deviation})
		copy(post.shapes, weights)
		return post
	}
	logs := make([]float64, 0, cap(post.parts))
	owner := make([]int, 0, cap(post.parts))
	most := math.Inf(-1)
	values := make([][]float64, len(c.Steps))
	for i, step := range c.Steps {
		values[i] = m.values(step)
	}
	for k := range m.shapes {
		sums := c.sums(values, m.end, k, p)
		for _, noise := range noises {
			variance := noise * noise * p.Drop * p.Drop / group
			log, mean, spread := sums.evidence(p, variance)
			if log += math.Log(weights[k]); math.IsNaN(log) || math.IsInf(log, -1) {
				continue
			}
			most = max(most, log)
			logs, owner = append(logs, log), append(owner, k)
			post.parts = append(post.parts, part{mean: mean, deviation: math.Sqrt(spread + variance*group)})
		}
	}
	sum := 0.0
	for _, log := range logs {
		sum += math.Exp(log - most)
	}
	for i, log := range logs {
		post.parts[i].weight = math.Exp(log-most) / sum
		post.shapes[owner[i]] += post.parts[i].weight
	}
	return post
}

// Below is the probability that the value at the horizon is below x, with the
// distribution stretched about its mean by the given factor.
func (p Posterior) Below(x, stretch float64) float64 {
	mean, _ := p.Moments()
	x = mean + (x-mean)/stretch
	sum := 0.0
	for _, q := range p.parts {
		sum += q.weight * normal.Below((x-q.mean)/q.deviation)
	}
	return sum
}

// Moments are the mean and the standard deviation of the value at the horizon.
func (p Posterior) Moments() (mean, deviation float64) {
	for _, q := range p.parts {
		mean += q.weight * q.mean
	}
	variance := 0.0
	for _, q := range p.parts {
		variance += q.weight * (q.deviation*q.deviation + (q.mean-mean)*(q.mean-mean))
	}
	return mean, math.Sqrt(variance)
}

// Shapes are the posterior probabilities of the shapes; they may serve as the
// Weights of a prior.
func (p Posterior) Shapes() []float64 { return p.shapes }

// Equal are the weights of the shapes when each family is as likely as the
// others.
func Equal() []float64 {
	all := shapes()
	members := map[family]float64{}
	for _, s := range all {
		members[s.family]++
	}
	weights := make([]float64, len(all))
	for i, s := range all {
		weights[i] = 1 / (members[s.family] * float64(len(members)))
	}
	return weights
}

// grouped averages groups of neighbours in a long curve; size is how many there
// are in a group.
func (c Curve) grouped() (out Curve, size float64) {
	n := len(c.Steps)
	if n <= most {
		return c, 1
	}
	for i := range most {
		from, to := i*n/most, (i+1)*n/most
		step, value, count := 0.0, 0.0, float64(to-from)
		for j := from; j < to; j++ {
			step += c.Steps[j] / count
			value += c.Values[j] / count
		}
		out.Steps, out.Values = append(out.Steps, step), append(out.Values, value)
	}
	return out, float64(n) / most
}

// sums are the sufficient statistics of the regression of z = y - Mean on h.
type sums struct{ n, h, hh, z, zh, zz float64 }

// sums for the k-th shape, whose values at the steps and at the horizon are given.
func (c Curve) sums(values [][]float64, ends []float64, k int, p Prior) sums {
	end := ends[k]
	start := values[0][k] - end
	if math.Abs(start) < 1e-12 {
		start = math.Copysign(1e-12, start)
	}
	var out sums
	for i := range c.Steps {
		h, z := (values[i][k]-end)/start, c.Values[i]-p.Mean
		out.n++
		out.h += h
		out.hh += h * h
		out.z += z
		out.zh += z * h
		out.zz += z * z
	}
	return out
}

// evidence of the regression with the given noise, and the mean and variance of
// v: Bayesian linear regression with normal priors on v and a.
func (s sums) evidence(p Prior, noise float64) (log, mean, variance float64) {
	priorV, priorA := p.Deviation*p.Deviation, p.Drop*p.Drop
	// The precision matrix of (v, a).
	vv, va, aa := s.n/noise+1/priorV, s.h/noise, s.hh/noise+1/priorA
	bv, ba := s.z/noise, s.zh/noise
	det := vv*aa - va*va
	v, a := (aa*bv-va*ba)/det, (vv*ba-va*bv)/det
	log = -0.5 * (s.n*math.Log(2*math.Pi*noise) + math.Log(priorV*priorA) + math.Log(det) + s.zz/noise - v*bv - a*ba)
	return log, p.Mean + v, aa / det
}
