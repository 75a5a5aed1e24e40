package gp

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/lbfgs"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Search looks for the row with the largest acquisition value: among many
// candidates first, then from the best ones along the gradient and through the
// neighbours in the dimensions that have none.
type Search struct {
	// Dims of the rows.
	Dims []box.Dim
	// Lengthscales by dimension: the unit of distance.
	Lengthscales []float64
	// Values and gradients of rows, larger is better.
	Values func(rows [][]float64, gradient bool) (values, gradients []float64)
	// Uniform writes the i-th candidate that covers the box to a row.
	Uniform func(i int, row []float64)
	// Anchors are good rows, best first, that candidates are drawn around; the
	// first one is a start.
	Anchors [][]float64
	// Settle, unless nil, brings a row to what is possible (say, which
	// dimensions are active); ok is false when nothing near is.
	Settle func(row []float64) (ok bool)
	// Low and High bound the numeric dimensions; nil: 0 and 1.
	Low, High []float64
	// Candidates, half of them local; Starts from the best global ones; local
	// ones are half as many. Iterations of each start at most.
	Candidates, Starts, Iterations int
	// Steps says that values are piecewise constant: in place of climbs along the
	// gradient, continuous dimensions have neighbours at random distances.
	Steps bool
	// Stream of randomness.
	Stream *rng.Stream
}

// Found is a row and its value.
type Found struct {
	Row   []float64
	Value float64
}

// Run gives what was found: the ends of the climbs, best first, then the global
// and the local candidates, each best first. It ends early with ctx.
func (s *Search) Run(ctx context.Context) []Found {
	global, local := s.candidates(ctx)
	starts := s.pick(nil, global, s.Starts, 0.05)
	starts = s.pick(starts, local, (s.Starts+1)/2, 0.01)
	if len(s.Anchors) > 0 {
		if found := s.evaluate([][]float64{slices.Clone(s.Anchors[0])}); len(found) > 0 {
			starts = append(starts, found[0])
		}
	}
	if s.continuous() {
		starts = s.climb(ctx, starts, s.Iterations)
	}
	if s.Steps || s.discrete() {
		starts = s.refine(ctx, starts)
	}
	sortFound(starts)
	return slices.Concat(starts, global, local)
}

// sortFound puts the best first; equal ones keep their order.
func sortFound(found []Found) {
	slices.SortStableFunc(found, func(a, b Found) int { return cmp.Compare(b.Value, a.Value) })
}

func (s *Search) bounds(d int) (low, high float64) {
	if s.Low == nil {
		return 0, 1
	}
	return s.Low[d], s.High[d]
}

// pick adds the best of found to starts that are not too near to another, in
// squared lengthscales.
func (s *Search) pick(starts, found []Found, count int, apart float64) []Found {
	taken := 0
	for _, f := range found {
		if taken == count {
			break
		}
		near := slices.ContainsFunc(starts, func(o Found) bool { return s.distance(f.Row, o.Row) < apart })
		if !near {
			starts = append(starts, Found{Row: slices.Clone(f.Row), Value: f.Value})
			taken++
		}
	}
	return starts
}

func (s *Search) distance(a, b []float64) float64 {
	sum := 0.0
	for d := range a {
		diff := a[d] - b[d]
		switch {
		case a[d] != a[d] && b[d] != b[d]:
			diff = 0
		case diff != diff || s.Dims[d].Kind == box.Choice && diff != 0:
			diff = 1
		}
		diff /= s.Lengthscales[d]
		sum += diff * diff
	}
	return sum
}

func (s *Search) continuous() bool {
	return !s.Steps && slices.ContainsFunc(s.Dims, func(d box.Dim) bool { return d.Kind == box.Continuous })
}

func (s *Search) discrete() bool {
	return slices.ContainsFunc(s.Dims, func(d box.Dim) bool { return d.Kind != box.Continuous })
}

// climb runs L-BFGS from each start, over the continuous dimensions in units of
// their lengthscales.
func (s *Search) climb(ctx context.Context, starts []Found, iterations int) []Found {
	out := slices.Clone(starts)
	for i, f := range starts {
		if ctx.Err() != nil {
			break
		}
		out[i] = s.climbFrom(ctx, f, iterations)
	}
	sortFound(out)
	return out
}

func (s *Search) climbFrom(ctx context.Context, from Found, iterations int) Found {
	var free []int
	var x, low, high, unit []float64
	for d, v := range from.Row {
		if s.Dims[d].Kind != box.Continuous || v != v {
			continue
		}
		u := math.Min(math.Max(s.Lengthscales[d], 1e-3), 10)
		l, h := s.bounds(d)
		free, unit = append(free, d), append(unit, u)
		x, low, high = append(x, v/u), append(low, l/u), append(high, h/u)
	}
	row := slices.Clone(from.Row)
	place := func(x []float64) {
		for k, d := range free {
			row[d] = x[k] * unit[k]
		}
	}
	best, value := lbfgs.Minimize(func(x, gradient []float64) float64 {
		if ctx.Err() != nil {
			return math.NaN()
		}
		place(x)
		values, gradients := s.Values([][]float64{row}, true)
		for k, d := range free {
			gradient[k] = -gradients[d] * unit[k]
		}
		return -values[0]
	}, x, low, high, lbfgs.Options{Iterations: iterations, Gradient: 1e-4, Progress: 1e-6})
	if place(best); -value > from.Value && (s.Settle == nil || s.Settle(row)) {
		return Found{Row: row, Value: -value}
	}
	return from
}

// refine tries other values in the dimensions that have no gradient, and climbs
// again, until nothing gets better.
func (s *Search) refine(ctx context.Context, starts []Found) []Found {
	rounds, kept := 6, 4
	if s.Steps {
		rounds, kept = 12, 8
	}
	sortFound(starts)
	best := starts[:min(kept, len(starts))]
	for range rounds {
		moved := false
		for i := range best {
			if ctx.Err() != nil {
				return starts
			}
			if f := s.bestNeighbour(best[i]); f.Value > best[i].Value+1e-9 {
				best[i] = f
				moved = true
			}
		}
		if !moved {
			break
		}
		if s.continuous() {
			copy(best, s.climb(ctx, best, max(5, s.Iterations/3)))
		}
	}
	return starts
}

// bestNeighbour is the best of all rows that differ in one dimension, or of
// the row with the best change in each dimension at once.
func (s *Search) bestNeighbour(f Found) Found {
	var rows [][]float64
	var changed []int
	for d := range s.Dims {
		for _, x := range s.alternatives(d, f.Row[d]) {
			row := slices.Clone(f.Row)
			row[d] = x
			if s.Settle != nil && !s.Settle(row) {
				continue
			}
			rows, changed = append(rows, row), append(changed, d)
		}
	}
	if len(rows) == 0 {
		return f
	}
	values, _ := s.Values(rows, false)
	best, all := f, slices.Clone(f.Row)
	better, last := 0, -1
	gain := 0.0
	for i, v := range values {
		if v > best.Value {
			best = Found{Row: rows[i], Value: v}
		}
		if changed[i] != last {
			last, gain = changed[i], f.Value
		}
		if v > gain {
			gain = v
			all[last] = rows[i][last]
			better++
		}
	}
	if better > 1 {
		for _, joint := range s.evaluate([][]float64{all}) {
			if joint.Value > best.Value {
				best = joint
			}
		}
	}
	return best
}

// steps are the standard deviations of steps in a continuous dimension (SMAC has four of
// 0.2: Hutter, Hoos and Leyton-Brown, "Sequential model-based optimization for general
// algorithm configuration", LION 2011, section 4.3).
var steps = [...]float64{0.2, 0.2, 0.2, 0.2, 0.05, 0.05}

// alternatives of a coordinate: each other choice or level, or, of many levels,
// those at a distance of a power of two.
func (s *Search) alternatives(d int, x float64) (out []float64) {
	dim := &s.Dims[d]
	switch {
	case x != x || dim.Kind == box.Continuous && !s.Steps:
	case dim.Kind == box.Continuous:
		low, high := s.bounds(d)
		for _, scale := range steps {
			out = append(out, math.Min(math.Max(x+scale*s.Stream.NormFloat64(), low), high))
		}
	case dim.Kind == box.Choice:
		for c := range dim.Count {
			if float64(c) != x {
				out = append(out, float64(c))
			}
		}
	case len(dim.Levels) <= 16:
		at := dim.Nearest(x)
		for i, level := range dim.Levels {
			if i != at {
				out = append(out, level)
			}
		}
	default:
		at := dim.Nearest(x)
		for step := 1; step < len(dim.Levels); step *= 2 {
			for _, to := range [2]int{at - step, at + step} {
				if to >= 0 && to < len(dim.Levels) {
					out = append(out, dim.Levels[to])
				}
			}
		}
		if s.Steps {
			out = append(out, dim.Levels[0], dim.Levels[len(dim.Levels)-1])
		}
	}
	return out
}
