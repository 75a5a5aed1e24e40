package algorithm

import (
	"math"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// encoding maps points to the rows that numeric models see, and back.
type encoding struct {
	space suggest.Space
	// dims has one dimension for each parameter.
	dims []box.Dim
}

func newEncoding(space suggest.Space) *encoding {
	e := &encoding{space: space, dims: make([]box.Dim, space.Len())}
	for i := range e.dims {
		e.dims[i] = dimension(space.At(i))
	}
	return e
}

func dimension(p suggest.Parameter) box.Dim {
	count, finite := p.Count()
	switch {
	case p.Kind() == suggest.Categorical:
		return box.Dim{Kind: box.Choice, Count: int(count)}
	case !finite || count > box.MaxLevels:
		return box.Dim{Kind: box.Continuous}
	}
	levels := make([]float64, count)
	for i := range levels {
		levels[i] = p.Encode(p.At(int64(i)))
	}
	return box.Dim{Kind: box.Ordered, Levels: levels}
}

// row is a point of the space as a model sees it: the unit coordinate of a
// number, the index of a choice, NaN where a parameter is not active.
func (e *encoding) row(p suggest.Point) []float64 {
	x := make([]float64, len(e.dims))
	for i, v := range p {
		switch {
		case !v.InSpace():
			x[i] = math.NaN()
		case e.dims[i].Kind == box.Choice:
			index, _ := v.Index()
			x[i] = float64(index)
		default:
			x[i] = e.space.At(i).Encode(v)
		}
	}
	return x
}

// point is the point nearest to a row. NaN becomes the middle of a number's
// range, or the first choice, where the parameter turns out to be active. The
// constraints of the space may not hold.
func (e *encoding) point(x []float64) suggest.Point {
	u := make([]float64, len(x))
	for i, v := range x {
		switch {
		case e.dims[i].Kind == box.Choice && math.IsNaN(v):
			u[i] = 0
		case e.dims[i].Kind == box.Choice:
			u[i] = (v + 0.5) / float64(e.dims[i].Count)
		case math.IsNaN(v):
			u[i] = 0.5
		case e.dims[i].Kind == box.Ordered:
			// Through the level itself: the edges of the cells of a logarithmic
			// grid are not half way between its levels.
			u[i] = e.dims[i].Levels[e.dims[i].Nearest(v)]
		default:
			u[i] = v
		}
	}
	return e.space.Decode(u)
}
