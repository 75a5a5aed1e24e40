package bayes

import (
	"context"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// chooser finds the untried point with the largest acquisition value.
type chooser struct {
	*data
	tried *propose.Tried
	seed  streams
	climb bool // along the gradient
}

// candidates of a search. Three times as many found nothing better.
const candidates = 320

// choose gives nil when the search came upon no untried point.
func (c *chooser) choose(ctx context.Context, number int, t target) suggest.Point {
	if size, finite := c.space.Size(); finite && size <= propose.Enumerable {
		return c.chooseOfAll(ctx, number, t)
	}
	dims := c.layout.Dims()
	search := gp.Search{
		Dims:         dims,
		Lengthscales: make([]float64, len(dims)),
		Values:       c.values(t, number),
		Uniform:      cover(dims, c.seed.stream("cover", number)),
		Anchors:      t.anchors,
		Candidates:   candidates,
		Starts:       6,
		Iterations:   40,
		Stream:       c.seed.stream("search", number),
	}
	for d := range search.Lengthscales {
		search.Lengthscales[d] = forestStep
		if t.theta != nil {
			search.Lengthscales[d] = math.Exp(t.theta[d])
		}
	}
	search.Steps = t.theta == nil
	if !c.climb {
		search.Iterations = 1
	}
	search.Low, search.High = c.bounds(t)
	if c.space.Constrained() || c.space.Conditional() || c.spend != nil {
		search.Settle = c.settle
	}
	for _, f := range search.Run(ctx) {
		p := c.point(f.Row)
		if !c.near(c.row(p)) && c.tried.Add(p) {
			return p
		}
	}
	return nil
}

// values of the target's acquisition, weighted by what users believe.
func (c *chooser) values(t target, number int) func(rows [][]float64, gradient bool) (values, gradients []float64) {
	if !c.space.Believed() {
		return t.acquisition.Values
	}
	weight, dims := propose.BeliefWeight(c.study.Budget, number), len(c.layout.Dims())
	return func(rows [][]float64, gradient bool) (values, gradients []float64) {
		values, gradients = t.acquisition.Values(rows, gradient)
		for i, row := range rows {
			var slope []float64
			if gradient {
				slope = gradients[i*dims:][:dims]
			}
			values[i] += weight * c.coder.LogPrior(row, weight, slope)
		}
		return values, gradients
	}
}

// bounds of the target, at the whole resource.
func (c *chooser) bounds(t target) (low, high []float64) {
	low, high = t.low, t.high
	if !c.levels.joint() {
		return low, high
	}
	n := len(c.layout.Dims())
	if low == nil {
		low, high = make([]float64, n), slices.Repeat([]float64{1}, n)
	}
	low[n-1], high[n-1] = 1, 1
	return low, high
}

// nearby is the squared distance, on the unit scale, below which a point of a
// continuous space would teach nothing new.
const nearby = 1e-12

// near says whether a row is next to one that was tried or is being tried.
func (c *chooser) near(row []float64) bool {
	if _, finite := c.space.Size(); finite {
		return false
	}
	for _, o := range c.measured {
		if apartness(o.X[:c.space.Len()], row) < nearby {
			return true
		}
	}
	return slices.ContainsFunc(c.running, func(x []float64) bool { return apartness(x, row) < nearby })
}

// settle brings a row to that of the nearest point.
func (c *chooser) settle(row []float64) bool {
	p := c.point(row)
	if !c.space.Contains(p) {
		return false
	}
	copy(row, c.row(p))
	return true
}

// chooseOfAll looks at each point of a small space. Of points that are worth the same, of
// which a forest has many, it draws one.
func (c *chooser) chooseOfAll(ctx context.Context, number int, t target) suggest.Point {
	valuesOf := c.values(t, number)
	size, _ := c.space.Size()
	var rows [][]float64
	var points []suggest.Point
	p := c.space.First()
	for range size {
		if key, ok := c.space.Key(p); ok && !c.tried.Has(key) && c.whole(p).Equal(p) {
			points, rows = append(points, slices.Clone(p)), append(rows, c.row(p))
		}
		p = c.space.Successor(p)
	}
	best, at, next := math.Inf(-1), -1, 0
	ties, equal := c.seed.stream("ties", number), uint64(0)
	for part := range slices.Chunk(rows, 64) {
		if next > 0 && ctx.Err() != nil {
			break
		}
		values, _ := valuesOf(part, false)
		for i, v := range values {
			switch {
			case v > best:
				best, at, equal = v, next+i, 1
			case v == best:
				if equal++; ties.Uint64N(equal) == 0 {
					at = next + i
				}
			}
		}
		next += len(part)
	}
	if at < 0 {
		return nil
	}
	c.tried.Add(points[at])
	return points[at]
}

// cover writes candidates that cover the space: a Sobol sequence, shifted at
// random for each trial.
func cover(dims []box.Dim, stream *rng.Stream) func(i int, row []float64) {
	sobol, err := qmc.NewSobol(max(1, len(dims)))
	if err != nil {
		return func(_ int, row []float64) {
			for d := range row {
				row[d] = onDimension(dims[d], stream.Float64())
			}
		}
	}
	shift := make([]uint32, len(dims))
	for d := range shift {
		shift[d] = uint32(stream.Uint64())
	}
	return func(i int, row []float64) {
		sobol.At(uint32(i), row)
		for d := range row {
			x := uint32(row[d]*(1<<32)) ^ shift[d]
			row[d] = onDimension(dims[d], (float64(x)+0.5)/(1<<32))
		}
	}
}

func onDimension(dim box.Dim, u float64) float64 {
	if dim.Kind == box.Choice {
		return math.Floor(u * float64(dim.Count))
	}
	return u
}
