package algorithm

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
)

// choose finds the untried point with the largest acquisition value; nil when
// the search came upon none.
func (q *question) choose(number int, t target) suggest.Point {
	if size, finite := q.space.Size(); finite && size <= enumerable {
		return q.chooseOfAll(t)
	}
	search := gp.Search{
		Dims:         q.layout.Dims(),
		Lengthscales: make([]float64, len(q.layout.Dims())),
		Values:       t.acquisition.Values,
		Uniform:      q.cover(number),
		Anchors:      t.anchors,
		Candidates:   candidates,
		Starts:       6,
		Iterations:   40,
		Stream:       q.stream("search", number),
	}
	for d := range search.Lengthscales {
		search.Lengthscales[d] = math.Exp(t.theta[d])
	}
	if !q.settings.climb {
		search.Iterations = 1
	}
	search.Low, search.High = q.hold(t.low, t.high)
	if q.space.Constrained() || q.space.Conditional() || q.spend != nil {
		search.Settle = q.settle
	}
	for _, f := range search.Run(q.ctx) {
		p := q.point(f.Row)
		if !q.near(q.row(p)) && q.tried.add(p) {
			return p
		}
	}
	return nil
}

// nearby is the squared distance, on the unit scale, below which a point of a
// continuous space would teach nothing new.
const nearby = 1e-12

// near says whether a row is next to one that was tried or is being tried.
func (q *question) near(row []float64) bool {
	if _, finite := q.space.Size(); finite {
		return false
	}
	for _, o := range q.history.measured {
		if apartness(o.x[:q.space.Len()], row) < nearby {
			return true
		}
	}
	return slices.ContainsFunc(q.running, func(x []float64) bool { return apartness(x, row) < nearby })
}

// candidates of a search. Twice as many found nothing better.
const candidates = 500

// settle brings a row to that of the nearest point.
func (q *question) settle(row []float64) bool {
	p := q.point(row)
	if !q.space.Contains(p) {
		return false
	}
	copy(row, q.row(p))
	return true
}

// cover writes candidates that cover the space: a Sobol sequence, shifted at
// random for each trial.
func (q *question) cover(number int) func(i int, row []float64) {
	dims := q.layout.Dims()
	stream := q.stream("cover", number)
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

// chooseOfAll looks at each point of a small space.
func (q *question) chooseOfAll(t target) suggest.Point {
	size, _ := q.space.Size()
	var rows [][]float64
	var points []suggest.Point
	p := q.space.First()
	for range size {
		if key, ok := q.space.Key(p); ok && !q.tried.has(key) && (q.spend == nil || q.spend(p).Equal(p)) {
			points = append(points, append(suggest.Point(nil), p...))
			rows = append(rows, q.row(p))
		}
		p = q.space.Successor(p)
	}
	best, at := math.Inf(-1), -1
	const size64 = 64
	for first := 0; first < len(rows) && (first == 0 || q.ctx.Err() == nil); first += size64 {
		values, _ := t.acquisition.Values(rows[first:min(first+size64, len(rows))], false)
		for i, v := range values {
			if v > best {
				best, at = v, first+i
			}
		}
	}
	if at < 0 {
		return nil
	}
	q.tried.add(points[at])
	return points[at]
}
