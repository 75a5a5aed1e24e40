package bayes

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// limit is a model whose value should be at most the bound; blur is added to its
// variance, and the logarithm of the probability is multiplied by the weight.
type limit struct {
	model  *gp.Model
	bound  float64
	blur   float64
	weight float64
}

// bound adds the models of what makes a trial useless: that it fails, and that
// it does not hold a constraint. kept are the positions of the measured trials
// that the models see. Models that cannot be made are left out.
func (g *surrogates) bound(ctx context.Context, t *target, number int, kept []int) {
	var limits []limit
	if len(g.failed) > 0 && t.theta != nil { // a forest knows of them
		if l, ok := g.failure(ctx, number, kept); ok {
			limits = append(limits, l)
		}
	}
	for c := range g.study.Constraints {
		if l, ok := g.constraint(ctx, number, c, kept); ok {
			limits = append(limits, l)
		}
	}
	if len(limits) == 0 {
		return
	}
	u := gp.Bounded{Utility: t.acquisition.Utility}
	for _, l := range limits {
		t.acquisition.Models = append(t.acquisition.Models, l.model)
		u.Limits, u.Blurs, u.Weights = append(u.Limits, l.bound), append(u.Blurs, l.blur), append(u.Weights, l.weight)
	}
	t.acquisition.Utility = u
}

// fewFailures is below how many failures, or successes, the model of failures
// keeps the mean of its prior.
const fewFailures = 3

// failure models whether trials fail, 1, or not, -1, around the mean of both
// (with Jeffreys' prior for the share of failures).
func (g *surrogates) failure(ctx context.Context, number int, kept []int) (limit, bool) {
	failed := g.failed[max(0, len(g.failed)-modelled/2):]
	total := float64(len(g.measured) + len(g.failed))
	mean := 2*(0.5+float64(len(g.failed)))/(1+total) - 1
	rows := slices.Concat(selected(rowsOf(g.measured), kept), rowsOf(failed))
	labels := slices.Concat(slices.Repeat([]float64{-1 - mean}, len(kept)), slices.Repeat([]float64{1 - mean}, len(failed)))
	s := newSample("failure", rows, labels)
	s.results = len(g.measured) + len(g.failed)
	theta := gp.Stationary(g.layout.Dims()).Theta().Rounded()
	if min(len(g.failed), len(kept)) >= fewFailures {
		// The step from success to failure alone makes a stationary model take short
		// lengthscales, and so forget between the trials that others failed there.
		fitted := g.models.theta(ctx, s, number)
		for d := range g.layout.Dims() {
			theta[d] = max(theta[d], fitted[d])
		}
	}
	m, ok := g.models.condition(s, theta, g.running)
	if !ok {
		return limit{}, false
	}
	return limit{model: m, bound: -mean, blur: 0.1, weight: 1 + failureWeight*float64(len(g.failed))*explained(m, s)}, true
}

// failureWeight is by how much each failure makes the chance of failing count
// more, where failures can be foretold. Without it, once little is left to
// improve where trials succeed, half of them go where they fail, as nothing is
// known of the loss there.
const failureWeight = 0.3

// explained is the share of the outcomes' variance that is predicted from the
// other outcomes, from 0 to 1: of failures that come by chance there is none.
func explained(m *gp.Model, s sample) float64 {
	mean, _ := m.LeaveOneOut()
	rest, all := 0.0, 0.0
	for i, y := range s.Outcomes {
		rest += (y - mean[i]) * (y - mean[i])
		all += y * y
	}
	return math.Max(0, 1-rest/all)
}

// constraint models how far the c-th constraint is violated, on a scale that is
// logarithmic far from its bound.
func (g *surrogates) constraint(ctx context.Context, number, c int, kept []int) (limit, bool) {
	var rows [][]float64
	var values []float64
	for _, i := range kept {
		if o := g.measured[i]; o.Violations != nil && !math.IsInf(o.Violations[c], 0) {
			rows, values = append(rows, o.X), append(values, o.Violations[c])
		}
	}
	if len(rows) < 3 {
		return limit{}, false
	}
	bound := bilog(values)
	s := newSample("constraint"+strconv.Itoa(c), rows, values)
	s.results = len(g.measured)
	m, ok := g.models.fit(ctx, s, number)
	return limit{model: m, bound: bound, blur: 1e-6, weight: 1}, ok
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
