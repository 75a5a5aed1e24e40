// Package bayes has Bayesian optimization with Gaussian processes.
package bayes

import (
	"context"
	"errors"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/propose"
)

const Name = "bayesianoptimization"

// bayesianOptimization models the losses by a Gaussian process and proposes
// where an improvement is to be expected. What one call does is read from the
// study as data, of which surrogates make a target, for which a chooser finds
// the point.
//
// The hyperparameters that it fits travel in Proposal.Meta and are where the
// next fit begins.
type bayesianOptimization struct {
	settings bayesianSettings
	reader   *history.Reader

	// levels at which the model looks at curves; nil: by the study.
	levels levels
	// spend gives a point with all of the resource; nil: it is not in the point.
	spend func(suggest.Point) suggest.Point

	lock  chan struct{} // holds one while the cache is in use
	cache *modelCache
}

type bayesianSettings struct {
	seeding  propose.Seeding
	initial  int // 0: by the number of parameters
	function string
	climb    bool
}

var _ suggest.Preparer = (*bayesianOptimization)(nil)

func Registration() propose.Registration {
	return propose.Registration{
		Name:     Name,
		Summary:  "Models the objective by a Gaussian process and tries where improvement is to be expected. The best choice for up to about a thousand trials of an expensive program.",
		New:      New,
		Adaptive: true,
		Settings: []propose.Setting{
			{Name: "acq_func", Default: "gp_hedge", Help: "What makes a point worth trying: gp_hedge (trials take turns; the last of the budget go where the model's mean is lowest), EI (expected improvement), PI (probability of improvement) or LCB (confidence bound). EIps and PIps stand for EI and PI."},
			{Name: "acq_optimizer", Default: "auto", Help: "How the best point is found: sampling (the best of many candidates), lbfgs (then along the gradient) or auto, which is lbfgs."},
			{Name: "base_estimator", Default: "GP", Help: "Accepted as Katib has it: GP, RF, ET or GBRT. The model is a Gaussian process in each case."},
			{Name: "n_initial_points", Default: "by the number of parameters, from 6 to 10", Help: "How many trials spread evenly over the space before the model is asked, a whole number of at least 0."},
			propose.RandomStateSetting(),
		},
	}
}

func New(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	a, err := newBayesianOf(space, settings)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// newBayesianOver models curves at the given resources. spend gives a point with
// all of the resource; nil: it is not in the point.
func NewOver(space suggest.Space, seeding propose.Seeding, at []int64, spend func(suggest.Point) suggest.Point) (suggest.Algorithm, error) {
	a, err := newBayesianOf(space, nil)
	if err != nil {
		return nil, err
	}
	a.settings.seeding, a.levels, a.spend = seeding, at, spend
	return a, nil
}

func newBayesianOf(space suggest.Space, settings suggest.Settings) (*bayesianOptimization, error) {
	r := settings.Read()
	a := &bayesianOptimization{reader: history.NewReader(space), lock: make(chan struct{}, 1), cache: newModelCache()}
	a.settings = bayesianSettings{
		seeding:  propose.ReadSeeding(r),
		initial:  int(r.Int("n_initial_points", 0, suggest.Range{Min: 0, Max: 1 << 20})),
		function: r.Choice("acq_func", "gp_hedge", "gp_hedge", "LCB", "EI", "PI", "EIps", "PIps"),
		climb:    r.Choice("acq_optimizer", "auto", "auto", "sampling", "lbfgs") != "sampling",
	}
	r.Choice("base_estimator", "GP", "GP", "RF", "ET", "GBRT")
	if a.settings.initial == 0 {
		a.settings.initial = min(max(6, 2*space.Len()+2), 10)
		if r.Has("n_initial_points") {
			a.settings.initial = 1
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return a, nil
}

// Suggest implements suggest.Algorithm.
func (a *bayesianOptimization) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if n <= 0 || errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	defer a.acquire(ctx)()
	p := a.proposer(s)
	return propose.Fill(ctx, s.NextNumber(), n, func(number int) (suggest.Proposal, error) {
		proposal, err := p.propose(ctx, number)
		if err == nil {
			p.data.running = append(p.data.running, p.data.row(proposal.Point))
		}
		return proposal, err
	})
}

// Prepare implements suggest.Preparer: it fits what the next question needs.
func (a *bayesianOptimization) Prepare(ctx context.Context, s suggest.Study) {
	defer a.acquire(ctx)()
	if ctx.Err() != nil {
		return
	}
	p := a.proposer(s)
	if number := s.NextNumber(); p.ready(number) {
		p.surrogates.target(ctx, number)
	}
}

// acquire waits for the cache, but no longer than ctx: an answer whose time is up
// does not use it. Call release in the end.
func (a *bayesianOptimization) acquire(ctx context.Context) (release func()) {
	select {
	case a.lock <- struct{}{}:
		return func() { <-a.lock }
	case <-ctx.Done():
		return func() {}
	}
}

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
func (a *bayesianOptimization) proposer(s suggest.Study) *proposer {
	d, seed := newData(a.reader, s, a.levels, a.spend), streams(a.settings.seeding.Seed(s))
	tried := propose.NewTriedAlways(d.space, d.rows)
	p := &proposer{initial: a.settings.initial, study: s, data: d, tried: tried, seed: seed}
	p.surrogates = &surrogates{
		data: d, seed: seed, portfolio: portfolio{function: a.settings.function, budget: s.Budget},
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
			return suggest.Proposal{Point: best, Why: "the best point of other studies", Meta: p.surrogates.models.takeMeta()}, true
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
