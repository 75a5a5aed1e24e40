// Package cmaes has the evolution strategy CMA-ES, which is replayed from the
// study. The mathematics is in suggest/numeric/cma.
package cmaes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/cma"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// cmaes is the covariance matrix adaptation evolution strategy (Hansen, "The
// CMA evolution strategy: a tutorial", arXiv 1604.00772), with margins for
// numbers with steps, learned probabilities for categories, restarts, and a
// warm start from trials that are no samples of its own.
//
// The distribution is rebuilt from what the trials carry: see generations. Late
// results and those of points from elsewhere are injected.
type cmaes struct {
	space   suggest.Space
	seeding propose.Seeding
	options cmaOptions

	mu       sync.Mutex
	follower *history.Follower
	rules    *cmaRules
	replay   *history.Generations[cmaState]
}

// cmaOptions are the settings.
type cmaOptions struct {
	cma.Options
	strategy  cma.Strategy
	surrogate bool
}

var (
	_ suggest.Algorithm = (*cmaes)(nil)
	_ suggest.Preparer  = (*cmaes)(nil)
)

// cmaSeparableAbove is how many numeric parameters make the covariance too
// expensive to learn within the usual budgets.
const cmaSeparableAbove = 50

// Registration is the registration of the algorithm.
func Registration() propose.Registration {
	return propose.Registration{
		Name:    "cmaes",
		Summary: "Moves a normal distribution towards the better trials (CMA-ES). Strong on numbers from a few hundred trials on; the first objective counts.",
		New:     New,
		Settings: []propose.Setting{
			{Name: "population", Default: "4 + 3 log(parameters)", Help: "How many results make a generation, a whole number of at least 2. Larger is slower and more robust against noise and many local optima."},
			propose.RandomStateSetting(),
			{Name: "restart_strategy", Default: "bipop", Help: "What follows when the search has converged: ipop begins anew with twice the population, bipop besides tries small ones, none stays where it is."},
			{Name: "separable", Default: "true above 50 numeric parameters", Help: "Learn variances only, and no dependencies between parameters: true or false."},
			{Name: "sigma", Default: "1/6", Help: "Initial standard deviation as a part of each parameter's range, above 0 and at most 1."},
			{Name: "surrogate", Default: "false", Help: "Pick the most promising of some samples with a Gaussian process of the results nearby: it saves trials and costs some milliseconds for each. For numbers only: true or false."},
		},
		Adaptive:       true,
		FirstObjective: true,
		Evolves:        true,
		Exhaustive:     true,
	}
}

// New builds the algorithm; see Registration.
func New(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	return suggest.Reading(newCMAES)(space, settings)
}

func newCMAES(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
	a := &cmaes{space: space, follower: history.NewFollower(space)}
	numbers := 0
	for _, dim := range a.follower.Dims {
		if dim.Kind != box.Choice {
			numbers++
		}
	}
	a.seeding = propose.ReadSeeding(r)
	a.options = cmaOptions{
		Options: cma.Options{
			Dims:       a.follower.Dims,
			Population: int(r.Int("population", 0, suggest.Range{Min: 2, Max: 10_000})),
			Sigma:      r.Float("sigma", 1./6, suggest.Range{OpenMin: true, Max: 1}),
			Separable:  r.Bool("separable", numbers > cmaSeparableAbove),
		},
		strategy:  cma.Strategy(r.Choice("restart_strategy", string(cma.BIPOP), string(cma.None), string(cma.IPOP), string(cma.BIPOP))),
		surrogate: r.Bool("surrogate", false),
	}
	return a
}

// Prepare implements suggest.Preparer.
func (a *cmaes) Prepare(ctx context.Context, s suggest.Study) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.catchUp(ctx, s) // Suggest tells
}

// Suggest implements suggest.Algorithm.
func (a *cmaes) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if err := ctx.Err(); errors.Is(err, context.Canceled) || n <= 0 {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.catchUp(ctx, s)
	late := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !late {
		return nil, err
	}
	var guide *surrogate
	hurried := false
	if a.options.surrogate && !late && a.replay.Ahead.State != nil {
		guide = surrogateOf(ctx, a.follower, a.replay.Ahead.State)
		hurried = guide == nil && ctx.Err() != nil
	}
	return propose.NewTriedAlways(a.space, a.follower.History.Rows).Fill(ctx, a.follower.History.Next, n, rng.NewKey(a.follower.Seed, "cmaes", "untried"), func(number int) propose.Drawing {
		d := a.drawer(number, late)
		d.guide, d.hurried = guide, hurried
		return propose.Drawing{Draw: d.draw, Proposal: d.proposal}
	})
}

// catchUp brings the replay up to the study.
func (a *cmaes) catchUp(ctx context.Context, s suggest.Study) error {
	changed, again := a.follower.Follow(s, a.seeding.Seed(s))
	if again || a.replay == nil || a.replay.Outdated(changed) {
		a.rules = newCmaRules(a.follower, a.options)
		a.replay = history.NewGenerations(a.follower, a.rules)
	}
	return a.replay.Advance(ctx)
}

// cmaDrawer draws the point of one trial: from the model and, when it finds no
// point that is new and allowed, from the prior.
type cmaDrawer struct {
	state *cmaState // nil: the prior only
	key   string    // of meta
	meta  string
	enc   *history.Encoding
	model *rng.Stream
	prior *rng.Stream
	u     []float64
	row   []float64
	draws int
	guide *surrogate      // nil: none
	best  []suggest.Point // of the guide that are left, best first

	hurried bool // there was no time for a guide
}

func (a *cmaes) drawer(number int, late bool) *cmaDrawer {
	d := &cmaDrawer{
		key:   a.rules.Meta(),
		enc:   a.follower.Encoding,
		model: a.rules.samples.Stream(uint64(number)),
		prior: a.rules.prior.Stream(uint64(number)),
		u:     a.rules.evenly(number),
		row:   make([]float64, a.space.Len()),
	}
	if !late {
		d.state, d.meta = a.replay.Ahead.State, a.replay.Ahead.Meta
	}
	return d
}

func (d *cmaDrawer) draw() suggest.Point {
	if d.draws == 0 && d.guide != nil {
		d.best = d.guided()
		d.draws = len(d.best)
	}
	if len(d.best) > 0 {
		p := d.best[0]
		d.best = d.best[1:]
		return p
	}
	d.draws++
	if d.state != nil && d.draws <= propose.ModelAttempts {
		d.state.model.Sample(d.model, d.u, d.row)
		d.u = nil
		return d.enc.Point(d.row)
	}
	d.prior.Fill(d.row)
	return d.enc.Space.Decode(d.row)
}

// guided are the first samples, the most promising one first.
func (d *cmaDrawer) guided() []suggest.Point {
	points, rows := make([]suggest.Point, surrogateSamples), make([][]float64, surrogateSamples)
	for i := range points {
		d.state.model.Sample(d.model, d.u, d.row)
		d.u = nil
		points[i] = d.enc.Point(d.row)
		rows[i] = d.enc.Row(points[i])
	}
	sorted := make([]suggest.Point, len(points))
	for k, i := range d.guide.order(rows) {
		sorted[k] = points[i]
	}
	return sorted
}

func (d *cmaDrawer) proposal(p suggest.Point) suggest.Proposal {
	switch {
	case d.state == nil:
		return suggest.Proposal{Point: p, Why: "drawn from the parameters' distributions, as time was up", Fallback: "deadline"}
	case d.draws > propose.ModelAttempts:
		return suggest.Proposal{Point: p, Why: "drawn from the parameters' distributions, as the model found no point that is new and allowed", Fallback: "prior"}
	}
	out := suggest.Proposal{
		Point: p,
		Meta:  suggest.Meta{d.key: d.meta},
		Why:   fmt.Sprintf("a sample of generation %d of CMA-ES with a largest standard deviation of %.2g of a range", d.state.generation, d.state.model.Deviation()),
	}
	switch {
	case d.hurried:
		out.Why, out.Fallback = out.Why+", without the surrogate, as time was up", "deadline"
	case d.guide != nil && d.draws <= surrogateSamples:
		out.Why += fmt.Sprintf(", the most promising of %d", surrogateSamples)
	}
	return out
}
