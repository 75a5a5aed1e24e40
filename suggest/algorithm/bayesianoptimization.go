package algorithm

import (
	"context"
	"errors"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

const bayesianName = "bayesianoptimization"

// bayesianOptimization models the losses by a Gaussian process and proposes
// where an improvement is to be expected. It is a portfolio: the trials take
// turns in how the losses are transformed before they are modelled and in what
// counts as worth trying, as no single choice is good for all functions.
//
// The hyperparameters that it fits travel in Proposal.Meta and are where the
// next fit begins.
type bayesianOptimization struct {
	space     suggest.Space
	settings  bayesianSettings
	historian *historian
	layout    *gp.Layout
	quartic   *gp.Layout // the same, with more of a trend

	// levels at which the model looks at curves; nil: by the study.
	levels levels
	// spend gives a point with all of the resource; nil: it is not in the point.
	spend func(suggest.Point) suggest.Point

	turn   chan struct{} // holds one while somebody uses the caches
	fits   []fitted
	models map[string]*cachedModel
	points triedPoints
}

type bayesianSettings struct {
	seeding  seeding
	initial  int // 0: by the number of parameters
	function string
	climb    bool
}

var _ suggest.Preparer = (*bayesianOptimization)(nil)

func bayesianRegistration() Registration {
	return Registration{
		Name:     bayesianName,
		Summary:  "Models the objective by a Gaussian process and tries where improvement is to be expected. The best choice for up to about a thousand trials of an expensive program.",
		New:      newBayesian,
		Adaptive: true,
		Settings: []Setting{
			{Name: "acq_func", Default: "gp_hedge", Help: "What makes a point worth trying: gp_hedge (trials take turns; the last of the budget go where the model's mean is lowest), EI (expected improvement), PI (probability of improvement) or LCB (confidence bound). EIps and PIps stand for EI and PI."},
			{Name: "acq_optimizer", Default: "auto", Help: "How the best point is found: sampling (the best of many candidates), lbfgs (then along the gradient) or auto, which is lbfgs."},
			{Name: "base_estimator", Default: "GP", Help: "Accepted as Katib has it: GP, RF, ET or GBRT. The model is a Gaussian process in each case."},
			{Name: "n_initial_points", Default: "by the number of parameters, from 6 to 10", Help: "How many trials spread evenly over the space before the model is asked, a whole number of at least 0."},
			randomStateSetting(),
		},
	}
}

func newBayesian(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	a, err := newBayesianOf(space, settings)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func newBayesianOf(space suggest.Space, settings suggest.Settings) (*bayesianOptimization, error) {
	r := settings.Read()
	a := &bayesianOptimization{space: space, historian: newHistorian(space), turn: make(chan struct{}, 1), models: map[string]*cachedModel{}}
	a.settings = bayesianSettings{
		seeding:  readSeeding(r),
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
	optional := make([]bool, space.Len())
	for i := range optional {
		_, optional[i] = space.At(i).When()
	}
	a.layout = gp.NewLayout(a.historian.dims, optional)
	a.quartic = a.layout.Quartic()
	return a, nil
}

// Suggest implements suggest.Algorithm.
func (a *bayesianOptimization) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if n <= 0 || errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	defer a.wait(ctx)()
	q := a.question(ctx, s)
	defer q.done()
	return fill(ctx, s.NextNumber(), n, func(number int) (suggest.Proposal, error) {
		p, err := q.propose(number)
		if err == nil {
			q.running = append(q.running, q.row(p.Point))
		}
		return p, err
	})
}

// Prepare implements suggest.Preparer: it fits what the next question needs.
func (a *bayesianOptimization) Prepare(ctx context.Context, s suggest.Study) {
	defer a.wait(ctx)()
	if ctx.Err() != nil {
		return
	}
	q := a.question(ctx, s)
	defer q.done()
	q.prepares = true
	if number := s.NextNumber(); q.ready(number) {
		q.acquisition(number)
	}
}

// wait waits for the caches, but no longer than ctx: the answer of a question
// whose time is up does not use them. done gives them free.
func (a *bayesianOptimization) wait(ctx context.Context) (done func()) {
	select {
	case a.turn <- struct{}{}:
		return func() { <-a.turn }
	case <-ctx.Done():
		return func() {}
	}
}

// question is one call of Suggest.
type question struct {
	*bayesianOptimization
	ctx     context.Context // of the call
	study   suggest.Study
	history history
	seed    uint64
	tried   *tried
	done    func()      // ends the use of tried
	running [][]float64 // pending and running trials, and what was proposed in this call
	meta    suggest.Meta
	thetas  map[string]gp.Theta // fitted in this call, by role
	results int                 // trials that were measured
	// prepares says that nobody waits for the answer.
	prepares bool

	// Of the model: those of the algorithm, or over points and resources.
	layout, quartic *gp.Layout
	levels          levels
}

func (a *bayesianOptimization) question(ctx context.Context, s suggest.Study) *question {
	q := &question{bayesianOptimization: a, ctx: ctx, study: s, history: a.historian.read(s), seed: a.settings.seeding.seed(s)}
	q.layout, q.quartic, q.results = a.layout, a.quartic, len(q.history.measured)
	l := a.levels
	if l == nil {
		l = levelsOf(s)
	}
	if l.joint() && len(s.Objectives) == 1 {
		q.unfold(l)
	}
	q.tried, q.done = a.points.open(a.space, s, true)
	for _, o := range q.history.running {
		q.running = append(q.running, o.x)
	}
	return q
}

func (q *question) stream(purpose string, number int) *rng.Stream {
	return rng.New(q.seed, bayesianName, number, purpose)
}

// ready says whether there is enough to learn from.
func (q *question) ready(number int) bool {
	initial := q.settings.initial
	if len(q.history.warm) > 0 && len(q.study.Objectives) == 1 { // with several they are not modelled
		initial = 3
	}
	known := q.results + len(q.history.failed)
	return q.results >= 3 && known+len(q.running) >= initial && number > 0
}

// propose finds the point for the trial with the given number.
func (q *question) propose(number int) (suggest.Proposal, error) {
	if q.tried.exhausted() {
		return suggest.Proposal{}, suggest.ErrExhausted
	}
	if !q.ready(number) {
		if p, ok := q.known(number); ok {
			return p, nil
		}
		p, middle, err := q.spread(number)
		why := "spread evenly over the space, before there is enough to learn from"
		if middle {
			why = "the middle of the space, for the beginning"
		}
		return suggest.Proposal{Point: p, Why: why}, err
	}
	if q.ctx.Err() != nil {
		return q.fallback(number, "deadline")
	}
	q.meta = nil
	target, problem := q.acquisition(number)
	if problem != "" {
		return q.fallback(number, problem)
	}
	point := q.choose(number, target)
	if point == nil {
		return q.fallback(number, "untried")
	}
	p := suggest.Proposal{Point: point, Meta: q.meta, Why: target.why}
	if q.ctx.Err() != nil {
		p.Fallback = "deadline"
	}
	return p, nil
}

func (q *question) fallback(number int, problem string) (suggest.Proposal, error) {
	p, _, err := q.spread(number)
	return suggest.Proposal{Point: p, Fallback: problem, Why: "spread evenly over the space, as the model could not be used (" + problem + ")"}, err
}

// spread is the point of a scrambled Sobol sequence with the trial's number, or
// a random one where that was tried or is forbidden. The numbers of the first
// trial are in the middle, where users expect something good when they choose
// ranges.
func (q *question) spread(number int) (p suggest.Point, middle bool, err error) {
	u := make([]float64, q.space.Len())
	first := len(u) > 0 && len(u) <= qmc.MaxDimensions
	stream := q.stream("spread", number)
	draw := func() suggest.Point {
		middle = false
		if first {
			first = false
			if sobol, err := qmc.NewScrambledSobol(len(u), rng.NewKey(q.seed, bayesianName, "sobol")); err == nil {
				sobol.At(uint32(number), u)
				middle = number == 0 && q.centre(u)
				return q.whole(q.space.Decode(u))
			}
		}
		for i := range u {
			u[i] = stream.Float64()
		}
		return q.whole(q.space.Decode(u))
	}
	p, err = q.tried.untried(q.ctx, draw, q.stream("untried", number))
	return p, middle, err
}

// centre moves the numbers of a point to the middle of their distributions, and
// says whether there are any.
func (q *question) centre(u []float64) (any bool) {
	for i := range u {
		if q.space.At(i).Kind() != suggest.Categorical {
			u[i], any = 0.5, true
		}
	}
	return any
}

// distinct puts equal rows together: their losses are averaged, and weigh as
// much more as they are many.
func distinct(rows [][]float64, losses []float64) (outRows [][]float64, outLosses, weights []float64) {
	at := make(map[string]int, len(rows))
	counts := make([]float64, 0, len(rows))
	for i, row := range rows {
		key := rowKey(row)
		k, ok := at[key]
		if !ok {
			k = len(outRows)
			at[key] = k
			outRows, outLosses, counts = append(outRows, row), append(outLosses, 0), append(counts, 0)
		}
		counts[k]++
		outLosses[k] += (losses[i] - outLosses[k]) / counts[k]
	}
	weights = slices.Clone(counts)
	for i, c := range counts {
		weights[i] = 1 / c
	}
	return outRows, outLosses, weights
}
