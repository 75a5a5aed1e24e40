package bayes

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// warmModelled is how many trials of other studies the model sees at most.
const warmModelled = 300

// warmStudies is how many of them it sees: the last by name.
const warmStudies = 50

// experience is what other studies tell: a model of their standardised losses.
type experience struct {
	model *gp.Model
	best  [][]float64 // their best rows, best first
	// share of it that the losses of this study follow, around the centre.
	share, centre float64
}

// experience models the warm trials, with pending rows; nil when there are too
// few, or several objectives.
func (g *surrogates) experience(ctx context.Context, number int, pending [][]float64) *experience {
	if len(g.study.Objectives) != 1 {
		return nil
	}
	rows, outcomes := g.warmRows()
	if len(rows) < 3 {
		return nil
	}
	s := newSample("warm", rows, outcomes)
	s.results = len(g.warm)
	if s.constant() {
		return nil
	}
	m, ok := g.models.condition(s, g.models.theta(ctx, s, number), pending)
	if !ok {
		return nil
	}
	return &experience{model: m, best: selected(s.Rows, ascending(s.Outcomes)[:min(10, len(s.Outcomes))])}
}

// target looks for what may be best by what other studies tell.
func (e *experience) target() target {
	return target{
		theta: e.model.Theta(), anchors: e.best, why: "may be best by what other studies tell",
		acquisition: gp.Acquisition{Models: []gp.Predictor{e.model}, Utility: gp.LowerBound{Beta: 1}},
	}
}

// warmRows are the warm trials with their losses, half-ranked within their own
// study: the scales of studies may differ.
func (d *data) warmRows() (rows [][]float64, outcomes []float64) {
	studies := history.Sources(d.warm)
	slices.SortFunc(studies, func(a, b []*history.Row) int { return cmp.Compare(a[0].Meta["study"], b[0].Meta["study"]) })
	studies = studies[max(0, len(studies)-warmStudies):]
	for _, study := range studies {
		losses := make([]float64, len(study))
		for i, o := range study {
			losses[i] = o.Losses[0]
		}
		y := gp.HalfRank.Apply(losses)
		for _, i := range spreadOut(y, max(3, warmModelled/len(studies))) {
			rows, outcomes = append(rows, study[i].X), append(outcomes, y[i])
		}
	}
	return rows, outcomes
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

// explain takes from the outcomes what the experience tells: the share of it
// that fits them best, which begins at 1 and goes to 0 when they disagree.
func (e *experience) explain(s *sample) {
	p := e.model.Predict(s.Rows, false)
	for _, m := range p.Mean {
		e.centre += m / float64(len(p.Mean))
	}
	const trust = 2 // as if so many results agreed
	common, squares := float64(trust), float64(trust)
	for i, m := range p.Mean {
		common += (m - e.centre) * s.Outcomes[i]
		squares += (m - e.centre) * (m - e.centre)
	}
	e.share = math.Min(math.Max(common/squares, 0), 1)
	for i, m := range p.Mean {
		s.Outcomes[i] -= e.share * (m - e.centre)
	}
}

// offset is the prior mean that the experience gives.
func (e *experience) offset(rows [][]float64, gradient bool) (values, gradients []float64) {
	p := e.model.Predict(rows, gradient)
	for i := range p.Mean {
		p.Mean[i] = e.share * (p.Mean[i] - e.centre)
	}
	for i := range p.MeanGradient {
		p.MeanGradient[i] *= e.share
	}
	return p.Mean, p.MeanGradient
}
