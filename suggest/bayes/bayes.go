// Package bayes has Bayesian optimization with Gaussian processes: of one
// objective, of several, under constraints, and over points and resources.
//
// An optimizer reads a study as data. Of these, models makes Gaussian processes,
// and surrogates a target: an acquisition function and where its search begins.
// The portfolio says how losses are transformed for a trial, and which
// acquisition function is used; the chooser finds the point.
package bayes

import (
	"context"
	"errors"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// Name of the algorithm.
const Name = "bayesianoptimization"

// optimizer is the algorithm. It keeps nothing between calls that is not read
// from the study: the hyperparameters that it fits travel in Proposal.Meta, and
// are where the next fit begins.
type optimizer struct {
	settings configuration
	reader   *history.Reader

	// levels at which the model looks at curves; nil: by the study.
	levels levels
	// spend gives a point with all of the resource; nil: it is not in the point.
	spend func(suggest.Point) suggest.Point

	lock  chan struct{} // holds one while the cache is in use
	cache *modelCache
}

type configuration struct {
	seeding  propose.Seeding
	initial  int
	function string
	climb    bool
	model    estimator
}

// estimator is a kind of model of the losses.
type estimator string

const (
	// processes are Gaussian processes.
	processes estimator = "GP"
	// trees are forests of regression trees.
	trees estimator = "ET"
)

var _ suggest.Preparer = (*optimizer)(nil)

// Registration of the algorithm.
func Registration() propose.Registration {
	return propose.Registration{
		Name:     Name,
		Summary:  "Models the objective by a Gaussian process and tries where improvement is to be expected. The best choice for up to about a thousand trials of an expensive program.",
		New:      New,
		Adaptive: true,
		Settings: []propose.Setting{
			{Name: "acq_func", Default: "gp_hedge", Help: "What makes a point worth trying: gp_hedge (trials take turns; the last of the budget go where the model's mean is lowest), EI (expected improvement), PI (probability of improvement) or LCB (confidence bound). EIps and PIps are EI and PI per second: how long trials take is modelled too, once three have told."},
			{Name: "acq_optimizer", Default: "auto", Help: "How the best point is found: sampling (the best of many candidates), lbfgs (then along the gradient) or auto, which is lbfgs."},
			{Name: "base_estimator", Default: "GP", Help: "The model of the losses: GP, a Gaussian process, or ET, a forest of extremely randomized trees, for conditional parameters and losses with steps. RF and GBRT are ET. With several objectives, earlier studies, or a rule that stops trials early it is a Gaussian process in each case. With ET, gp_hedge is EI, and the best point is looked for step by step whatever acq_optimizer says."},
			{Name: "n_initial_points", Default: "8", Help: "How many trials spread evenly over the space before the model is asked, a whole number of at least 0."},
			propose.RandomStateSetting(),
		},
	}
}

// New implements suggest.New.
func New(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	return suggest.Reading(func(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm { return newOptimizer(space, r) })(space, settings)
}

// NewForest is New with a forest in the place of the Gaussian process, where the study
// is Forestable.
func NewForest(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	return New(space, append(settings[:len(settings):len(settings)], suggest.Setting{Name: "base_estimator", Value: string(trees)}))
}

// NewOver is the algorithm over points and resources: it models curves at the
// given resources. spend gives a point with all of the resource; nil: it is not in
// the point.
func NewOver(space suggest.Space, seeding propose.Seeding, at []int64, spend func(suggest.Point) suggest.Point) suggest.Algorithm {
	a := newOptimizer(space, suggest.Settings{}.Read())
	a.settings.seeding, a.levels, a.spend = seeding, at, spend
	return a
}

func newOptimizer(space suggest.Space, r *suggest.SettingsReader) *optimizer {
	a := &optimizer{reader: history.NewReader(space), lock: make(chan struct{}, 1), cache: newModelCache()}
	a.settings = configuration{
		seeding:  propose.ReadSeeding(r),
		initial:  int(r.Int("n_initial_points", 8, suggest.Range{Min: 0, Max: 1 << 20})),
		function: r.Choice("acq_func", "gp_hedge", "gp_hedge", "LCB", "EI", "PI", "EIps", "PIps"),
		climb:    r.Choice("acq_optimizer", "auto", "auto", "sampling", "lbfgs") != "sampling",
	}
	if a.settings.model = estimator(r.Choice("base_estimator", string(processes), string(processes), "RF", string(trees), "GBRT")); a.settings.model != processes {
		a.settings.model = trees
	}
	a.settings.initial = max(1, a.settings.initial)
	return a
}

// Suggest implements suggest.Algorithm.
func (a *optimizer) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
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
func (a *optimizer) Prepare(ctx context.Context, s suggest.Study) {
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
func (a *optimizer) acquire(ctx context.Context) (release func()) {
	select {
	case a.lock <- struct{}{}:
		return func() { <-a.lock }
	case <-ctx.Done():
		return func() {}
	}
}
