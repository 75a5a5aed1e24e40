package algorithm

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
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
	theta gp.Theta
	// share of it that the losses of this study follow, around the centre.
	share, centre float64
}

// experience models the warm trials; nil when there are too few, or several
// objectives.
func (q *question) experience(number int) *experience {
	if len(q.study.Objectives) != 1 {
		return nil
	}
	rows, outcomes := q.warmRows()
	if len(rows) < 3 {
		return nil
	}
	s := sample{role: "warm", results: len(q.history.warm)}
	s.rows, s.outcomes, s.weights = distinct(rows, outcomes)
	if slices.Min(s.outcomes) == slices.Max(s.outcomes) {
		return nil
	}
	e := &experience{theta: q.theta(s, number)}
	var ok bool
	var pending [][]float64
	if !q.ready(number) { // then it is all there is to go by
		pending = slices.Concat(q.rows(q.history.measured), q.rows(q.history.failed), q.running)
	}
	if e.model, ok = q.model(s, e.theta, pending); !ok {
		return nil
	}
	for _, i := range ascending(s.outcomes)[:min(10, len(s.outcomes))] {
		e.best = append(e.best, s.rows[i])
	}
	return e
}

// known proposes, before there are results to learn from, what other studies
// tell: first their best point, then where they may be best; ok is false when
// they tell nothing.
func (q *question) known(number int) (p suggest.Proposal, ok bool) {
	if len(q.history.warm) == 0 || q.ctx.Err() != nil {
		return p, false
	}
	q.meta = nil
	e := q.experience(number)
	if e == nil {
		return p, false
	}
	if len(q.study.Trials) == 0 && len(q.running) == 0 {
		if p.Point = q.point(e.best[0]); q.tried.add(p.Point) {
			p.Why, p.Meta = "the best point of other studies", q.meta
			return p, true
		}
	}
	t := target{theta: e.theta, anchors: e.best}
	t.acquisition = gp.Acquisition{Models: []*gp.Model{e.model}, Utility: gp.LowerBound{Beta: 1}}
	if p.Point = q.choose(number, t); p.Point == nil {
		return p, false
	}
	p.Why, p.Meta = "may be best by what other studies tell", q.meta
	return p, true
}

func (q *question) rows(observations []*observation) [][]float64 {
	out := make([][]float64, len(observations))
	for i, o := range observations {
		out[i] = o.x
	}
	return out
}

// warmRows are the warm trials with their losses, half-ranked within their own
// study: the scales of studies may differ.
func (q *question) warmRows() (rows [][]float64, outcomes []float64) {
	byStudy := map[string][]*observation{}
	var studies []string
	for _, o := range q.history.warm {
		name := o.trial.Meta["study"]
		if _, ok := byStudy[name]; !ok {
			studies = append(studies, name)
		}
		byStudy[name] = append(byStudy[name], o)
	}
	slices.Sort(studies)
	studies = studies[max(0, len(studies)-warmStudies):]
	for _, name := range studies {
		observations := byStudy[name]
		losses := make([]float64, len(observations))
		all := make([][]float64, len(observations))
		for i, o := range observations {
			all[i], losses[i] = o.x, o.losses[0]
		}
		y := gp.HalfRank.Apply(losses)
		for _, i := range spreadOut(y, max(3, warmModelled/len(studies))) {
			rows, outcomes = append(rows, all[i]), append(outcomes, y[i])
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
	rest := order[count/2:]
	for k := range count - count/2 {
		out = append(out, rest[k*len(rest)/(count-count/2)])
	}
	slices.Sort(out)
	return out
}

// ascending gives the positions in order of their values.
func ascending(y []float64) []int {
	order := rangeOf(len(y))
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(y[i], y[j]), cmp.Compare(i, j)) })
	return order
}

// explain takes from the outcomes what the experience tells: the share of it
// that fits them best, which begins at 1 and goes to 0 when they disagree.
func (e *experience) explain(s *sample) {
	p := e.model.Predict(s.rows, false)
	for _, m := range p.Mean {
		e.centre += m / float64(len(p.Mean))
	}
	const trust = 2 // as if so many results agreed
	common, squares := float64(trust), float64(trust)
	for i, m := range p.Mean {
		common += (m - e.centre) * s.outcomes[i]
		squares += (m - e.centre) * (m - e.centre)
	}
	e.share = math.Min(math.Max(common/squares, 0), 1)
	for i, m := range p.Mean {
		s.outcomes[i] -= e.share * (m - e.centre)
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
