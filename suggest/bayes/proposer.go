package bayes

import (
	"context"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// proposer makes the proposals of one call.
type proposer struct {
	initial    int // how many trials are spread evenly at first
	study      suggest.Study
	data       *data
	tried      *propose.Tried
	seed       streams
	surrogates *surrogates
	chooser    *chooser
}

// proposer of a study.
func (a *optimizer) proposer(s suggest.Study) *proposer {
	model := a.settings.model
	if !Forestable(s) {
		model = processes
	}
	d, seed := newData(a.reader, s, a.levels, a.spend), streams(a.settings.seeding.Seed(s))
	tried := propose.NewTriedAlways(d.space, d.rows)
	p := &proposer{initial: a.settings.initial, study: s, data: d, tried: tried, seed: seed}
	p.surrogates = &surrogates{
		data: d, seed: seed, estimator: model, portfolio: portfolio{function: a.settings.function, budget: s.Budget, forest: model == trees},
		models: &models{data: d, seed: seed, cache: a.cache},
	}
	p.chooser = &chooser{data: d, tried: tried, seed: seed, climb: a.settings.climb}
	return p
}

// ready says whether there is enough to learn from.
func (p *proposer) ready(number int) bool {
	initial := p.initial
	if len(p.data.warm) > 0 && len(p.study.Objectives) == 1 { // with several they are not modelled
		initial = 3
	}
	known := p.data.results + len(p.data.failed)
	return p.data.results >= 3 && known+len(p.data.running) >= initial && number > 0
}

// propose finds the point for the trial with the given number.
func (p *proposer) propose(ctx context.Context, number int) (suggest.Proposal, error) {
	if p.tried.Exhausted() {
		return suggest.Proposal{}, suggest.ErrExhausted
	}
	late := ctx.Err() != nil
	if !p.ready(number) {
		if !late {
			if known, ok := p.known(ctx, number); ok {
				return known, nil
			}
		}
		point, middle, err := spread(ctx, p.data, p.tried, p.seed, number)
		why := "spread evenly over the space, before there is enough to learn from"
		if middle {
			why = "the middle of the space, for the beginning"
		}
		return suggest.Proposal{Point: point, Why: why}, err
	}
	if late {
		return p.fallback(ctx, number, "deadline")
	}
	target, problem := p.surrogates.target(ctx, number)
	if problem != "" {
		return p.fallback(ctx, number, problem)
	}
	point := p.chooser.choose(ctx, number, target)
	if point == nil {
		return p.fallback(ctx, number, "untried")
	}
	proposal := suggest.Proposal{Point: point, Meta: p.surrogates.models.takeMeta(), Why: target.why}
	if ctx.Err() != nil {
		proposal.Fallback = "deadline"
	}
	return proposal, nil
}

// known proposes, before there are results to learn from, what other studies
// tell: first their best point, then where they may be best; ok is false when
// they tell nothing.
func (p *proposer) known(ctx context.Context, number int) (proposal suggest.Proposal, ok bool) {
	if len(p.data.warm) == 0 {
		return proposal, false
	}
	pending := slices.Concat(rowsOf(p.data.measured), rowsOf(p.data.failed), p.data.running) // it is all there is to go by
	e := p.surrogates.experience(ctx, number, pending)
	if e == nil {
		return proposal, false
	}
	t := e.target()
	if len(p.study.Trials) == 0 && len(p.data.running) == 0 {
		if best := p.data.point(e.best[0]); p.tried.Add(best) {
			return suggest.Proposal{Point: best, Why: "the best point of an earlier study", Meta: p.surrogates.models.takeMeta()}, true
		}
	}
	point := p.chooser.choose(ctx, number, t)
	return suggest.Proposal{Point: point, Why: t.why, Meta: p.surrogates.models.takeMeta()}, point != nil
}

func (p *proposer) fallback(ctx context.Context, number int, problem string) (suggest.Proposal, error) {
	p.surrogates.models.takeMeta() // it is fitted again for the next trial
	point, _, err := spread(ctx, p.data, p.tried, p.seed, number)
	return suggest.Proposal{Point: point, Fallback: problem, Why: "spread evenly over the space, as the model could not be used (" + problem + ")"}, err
}
