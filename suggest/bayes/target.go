package bayes

import (
	"context"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// target is what a search maximises, and where it begins.
type target struct {
	acquisition gp.Acquisition
	theta       gp.Theta    // its lengthscales are the unit of distance; nil: the model has none, and no gradient
	anchors     [][]float64 // good rows, best first
	low, high   []float64   // of the search; nil: everything
	why         string
}

// surrogates turn data into targets.
type surrogates struct {
	*data
	models    *models
	portfolio portfolio
	seed      streams
	estimator estimator
}

// target of a trial. problem is a word when there is none.
func (g *surrogates) target(ctx context.Context, number int) (t target, problem string) {
	if m := len(g.study.Objectives); m >= 2 && m <= exactObjectives && g.results <= exactResults {
		t, problem = g.front(ctx, number)
	} else {
		t, problem = g.loss(ctx, number)
	}
	if problem == "singular" && ctx.Err() != nil {
		problem = "deadline"
	}
	if problem == "" && t.acquisition.Utility == nil {
		problem = "constraints" // nothing holds them, and there is too little to model them
	}
	return t, problem
}

// loss models one loss: the objective, or a scalarisation of several.
func (g *surrogates) loss(ctx context.Context, number int) (t target, problem string) {
	losses := g.losses(g.weights(number))
	kept := g.subset(losses)
	way := g.portfolio.arm(number, len(g.running))
	s := newSample(string(way.transform), selected(rowsOf(g.measured), kept), selected(losses, kept))
	if s.constant() {
		return t, "constant"
	}
	earlier := g.experience(ctx, number, nil)
	s.results, s.prior, s.Outcomes = len(g.measured), gp.Rough, way.transform.Apply(s.Outcomes)
	switch {
	case g.levels.joint(): // losses change smoothly along a curve
		s.prior = gp.Smooth
	case earlier != nil: // what similar studies do not explain is small and smooth
		s.prior = gp.Smooth
	case g.space.Believed() && way.transform == gp.Linear: // a trend leads away from a prior of the user that is wrong
		s.prior = gp.Smooth
	}
	if g.estimator == trees {
		g.forest(ctx, &t, s, way, number)
	} else if !g.gaussian(ctx, &t, s, earlier, way, number) {
		return t, "singular"
	}
	g.bound(ctx, &t, number, kept)
	t.why = way.why(t.theta == nil)
	if way.perSecond && g.perSecond(ctx, &t, number, kept) {
		t.why = strings.Replace(t.why, " here", " here for the time that the trial takes", 1)
	}
	return t, ""
}

// gaussian makes the target of a Gaussian process that learns from a sample, and from
// what other studies tell.
func (g *surrogates) gaussian(ctx context.Context, t *target, s sample, earlier *experience, way arm, number int) (ok bool) {
	if earlier != nil {
		earlier.explain(&s)
		s.role += " after warm"
		t.acquisition.Offset = earlier.offset
	}
	m, ok := g.models.fit(ctx, s, number)
	if !ok {
		return false
	}
	t.theta = m.Theta()
	candidates, means := s.Rows, incumbents(m, s)
	if g.levels.joint() {
		candidates = wholes(s.Rows)
		means = m.Predict(candidates, false).Mean
	}
	if earlier != nil {
		offsets, _ := earlier.offset(candidates, false)
		means = sum(means, offsets)
	}
	best := g.anchor(t, candidates, means)
	t.low, t.high = region(number, g.layout.Dims(), t.theta, t.anchors[0], g.losses(g.weights(number)))
	t.acquisition.Models, t.acquisition.Utility = []gp.Predictor{m}, way.utility(best)
	return true
}

// perSecond takes from the acquisition the logarithm of how long trials take, by a model
// of the measured trials whose durations are known; false while there are too few.
func (g *surrogates) perSecond(ctx context.Context, t *target, number int, kept []int) bool {
	if g.levels.joint() || t.acquisition.Utility == nil {
		return false // rows are then parts of trials
	}
	var rows [][]float64
	var logs []float64
	for _, i := range kept {
		if o := g.measured[i]; o.Duration > 0 {
			rows, logs = append(rows, o.X), append(logs, math.Log(o.Duration))
		}
	}
	if len(rows) < 3 {
		return false
	}
	s := newSample("duration", rows, logs)
	if s.constant() {
		return false
	}
	deviation := stat.PopStdDev(s.Outcomes, nil)
	s.results, s.prior, s.Outcomes = len(rows), gp.Smooth, gp.Linear.Apply(s.Outcomes)
	m, ok := g.models.fit(ctx, s, number)
	if !ok {
		return false
	}
	t.acquisition.Models = append(t.acquisition.Models, m)
	t.acquisition.Utility = gp.PerCost{Utility: t.acquisition.Utility, Scale: deviation}
	return true
}

func selected[T any](from []T, at []int) []T {
	out := make([]T, len(at))
	for k, i := range at {
		out[k] = from[i]
	}
	return out
}

func sum(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i, v := range b {
		out[i] += v
	}
	return out
}

// incumbents are the values at a model's own rows: the outcomes, or the means
// where there is noise.
func incumbents(m *gp.Model, s sample) []float64 {
	if m.Theta().Noise() > 1e-2*m.Theta().Signal() {
		return m.Fitted()
	}
	return s.Outcomes
}

// weights of the objectives in a trial's scalarisation: uniform on the simplex.
func (g *surrogates) weights(number int) []float64 {
	out := []float64{1}
	if n := len(g.study.Objectives); n > 1 {
		stream, total := g.seed.stream("weights", number), 0.0
		out = make([]float64, n)
		for k := range out {
			out[k] = -math.Log(stream.Float64())
			total += out[k]
		}
		for k := range out {
			out[k] /= total
		}
	}
	return out
}

// anchor sets the rows that the search begins at, and gives the value to
// improve upon: that of the best row which holds the constraints, +Inf when
// there is none.
func (g *surrogates) anchor(t *target, rows [][]float64, values []float64) float64 {
	violated := g.violated()
	best, ranks := math.Inf(1), slices.Clone(values)
	for i, row := range rows {
		if len(violated) > 0 && violated[history.RowKey(row)] {
			ranks[i] = math.MaxFloat64
		} else {
			best = math.Min(best, values[i])
		}
	}
	t.anchors = selected(rows, ascending(ranks)[:min(10, len(ranks))])
	return best
}
