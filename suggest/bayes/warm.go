package bayes

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// warmModelled is how many trials of other studies the model sees at most.
const warmModelled = 300

// warmStudies is how many of them it sees: the last by name.
const warmStudies = 50

// experience is what other studies tell: models of their standardised losses.
type experience struct {
	pool    *gp.Model   // of all of them together
	best    [][]float64 // their best rows, best first
	sources []source
}

// source is one of the other studies.
type source struct {
	model *gp.Model
	// weight of what it predicts, around the centre, in the losses of this study.
	weight, centre float64
}

// experience models the warm trials, with pending rows; nil when there are too
// few, or several objectives.
func (g *surrogates) experience(ctx context.Context, number int, pending [][]float64) *experience {
	if len(g.study.Objectives) != 1 {
		return nil
	}
	studies := g.warmStudies()
	var pool sample
	for _, s := range studies {
		pool.Rows, pool.Outcomes = append(pool.Rows, s.Rows...), append(pool.Outcomes, s.Outcomes...)
	}
	if len(pool.Rows) < 3 {
		return nil
	}
	pool = newSample("warm", pool.Rows, pool.Outcomes)
	pool.results = len(g.warm)
	if pool.constant() {
		return nil
	}
	theta := g.models.theta(ctx, pool, number)
	e := &experience{best: selected(pool.Rows, ascending(pool.Outcomes)[:min(10, len(pool.Outcomes))])}
	var ok bool
	if e.pool, ok = g.models.condition(pool, theta, pending); !ok {
		return nil
	}
	for _, s := range studies {
		if s.constant() {
			continue
		}
		if m, ok := g.models.condition(s, g.models.theta(ctx, s, number), nil); ok {
			e.sources = append(e.sources, source{model: m})
		}
	}
	return e
}

// target looks for what may be best by what other studies tell.
func (e *experience) target() target {
	return target{
		theta: e.pool.Theta(), anchors: e.best, why: "may be best by what other studies tell",
		acquisition: gp.Acquisition{Models: []gp.Predictor{e.pool}, Utility: gp.LowerBound{Beta: 1}},
	}
}

// warmStudies are the other studies with their losses, half-ranked within each: their
// scales may differ.
func (d *data) warmStudies() (out []sample) {
	studies := history.Sources(d.warm)
	slices.SortFunc(studies, func(a, b []*history.Row) int { return cmp.Compare(a[0].Meta["study"], b[0].Meta["study"]) })
	studies = studies[max(0, len(studies)-warmStudies):]
	for _, study := range studies {
		losses := make([]float64, len(study))
		for i, o := range study {
			losses[i] = o.Losses[0]
		}
		y := gp.HalfRank.Apply(losses)
		at := spreadOut(y, max(3, warmModelled/len(studies)))
		s := newSample("warm "+study[0].Meta["study"], selected(rowsOf(study), at), selected(y, at))
		s.results = len(study)
		out = append(out, s)
	}
	return out
}

// spreadOut picks count positions: the best half of them, and the rest evenly.
func spreadOut(y []float64, count int) []int {
	order := ascending(y)
	if len(y) <= count {
		return rangeOf(len(y))
	}
	out := slices.Clone(order[:count/2])
	out = append(out, evenly(order[count/2:], count-count/2)...)
	slices.Sort(out)
	return out
}

const (
	// warmTrust is as how many results that agree with the sum of the sources count.
	warmTrust = 2
	// warmEven is as how many results that agree with equal weights count.
	warmEven = 2
)

// explain takes from the outcomes what the sources tell, each with the weight that fits
// them best. The weights are equal at first, with the sum 1; one that disagrees goes to 0.
func (e *experience) explain(s *sample) {
	k := len(e.sources)
	tells := make([][]float64, k)
	for i := range e.sources {
		tells[i] = e.sources[i].model.Predict(s.Rows, false).Mean
		e.sources[i].centre = stat.Mean(tells[i], nil)
		floats.AddConst(-e.sources[i].centre, tells[i])
	}
	for i, w := range weighed(tells, s.Outcomes) {
		e.sources[i].weight = w
		floats.AddScaled(s.Outcomes, -w, tells[i])
	}
}

// weighed gives the weights of at least 0, and of at most 1 in all, whose sum of the
// sources' means is nearest to the outcomes: the least of
//
//	|y - sum w m|^2 + warmTrust (sum w - 1)^2 + warmEven sum (w - 1/k)^2
func weighed(means [][]float64, outcomes []float64) []float64 {
	price := 0.0 // of a weight, which keeps the sum at 1 (Lagrange's multiplier)
	weights := descended(means, outcomes, price)
	if floats.Sum(weights) <= 1 {
		return weights
	}
	low, high := 0.0, 1.0
	for floats.Sum(descended(means, outcomes, high)) > 1 {
		low, high = high, 2*high
	}
	const halvings = 40
	for range halvings {
		if price = low/2 + high/2; floats.Sum(descended(means, outcomes, price)) > 1 {
			low = price
		} else {
			high = price
		}
	}
	return descended(means, outcomes, high)
}

// descended finds the weights of at least 0 for a price of each, by coordinate descent.
func descended(means [][]float64, outcomes []float64, price float64) []float64 {
	const rounds = 100
	k := len(means)
	weights, rest := make([]float64, k), slices.Clone(outcomes)
	for i := range weights {
		weights[i] = 1 / float64(k)
		floats.AddScaled(rest, -weights[i], means[i])
	}
	total := 1.0
	for range rounds {
		moved := 0.0
		for i, m := range means {
			slope := floats.Dot(rest, m) - warmTrust*(total-1) - warmEven*(weights[i]-1/float64(k)) - price
			step := math.Max(slope/(floats.Dot(m, m)+warmTrust+warmEven), -weights[i])
			weights[i] += step
			total += step
			floats.AddScaled(rest, -step, m)
			moved = math.Max(moved, math.Abs(step))
		}
		if moved < 1e-9 {
			break
		}
	}
	return weights
}

// offset is the prior mean that the sources give.
func (e *experience) offset(rows [][]float64, gradient bool) (values, gradients []float64) {
	values = make([]float64, len(rows))
	if gradient && len(rows) > 0 {
		gradients = make([]float64, len(rows)*len(rows[0]))
	}
	for _, s := range e.sources {
		if s.weight == 0 {
			continue
		}
		p := s.model.Predict(rows, gradient)
		floats.AddConst(-s.centre, p.Mean)
		floats.AddScaled(values, s.weight, p.Mean)
		if gradient {
			floats.AddScaled(gradients, s.weight, p.MeanGradient)
		}
	}
	return values, gradients
}
