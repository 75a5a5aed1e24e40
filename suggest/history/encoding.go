package history

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// Encoding maps points to the rows that numeric models see, and back.
type Encoding struct {
	Space suggest.Space
	// dims has one dimension for each parameter.
	Dims []box.Dim
}

// NewEncoding is the encoding of a space.
func NewEncoding(space suggest.Space) *Encoding {
	e := &Encoding{Space: space, Dims: make([]box.Dim, space.Len())}
	for i := range e.Dims {
		e.Dims[i] = dimension(space.At(i))
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

// Row is a point of the space as a model sees it: the unit coordinate of a
// number, the index of a choice, NaN where a parameter is not active.
func (e *Encoding) Row(p suggest.Point) []float64 {
	x := make([]float64, len(e.Dims))
	for i, v := range p {
		switch {
		case !v.InSpace():
			x[i] = math.NaN()
		case e.Dims[i].Kind == box.Choice:
			index, _ := v.Index()
			x[i] = float64(index)
		default:
			x[i] = e.Space.At(i).Encode(v)
		}
	}
	return x
}

// Point is the point nearest to a row. NaN becomes the middle of a number's
// range, or the first choice, where the parameter turns out to be active. The
// constraints of the space may not hold.
func (e *Encoding) Point(x []float64) suggest.Point {
	u := make([]float64, len(x))
	for i, v := range x {
		switch {
		case e.Dims[i].Kind == box.Choice && math.IsNaN(v):
			u[i] = 0
		case e.Dims[i].Kind == box.Choice:
			u[i] = (v + 0.5) / float64(e.Dims[i].Count)
		case math.IsNaN(v):
			u[i] = 0.5
		case e.Dims[i].Kind == box.Ordered:
			// Through the level itself: the edges of the cells of a logarithmic
			// grid are not half way between its levels.
			u[i] = e.Dims[i].Levels[e.Dims[i].Nearest(v)]
		default:
			u[i] = v
		}
	}
	return e.Space.Decode(u)
}

// LogPrior is the logarithm of the density that the priors of the parameters have at a row,
// relative to that without priors. The derivatives are added to slope, unless it is nil,
// times the weight.
func (e *Encoding) LogPrior(row []float64, weight float64, slope []float64) float64 {
	sum := 0.0
	for i := range e.Dims {
		p := e.Space.At(i)
		if !p.Believed() || math.IsNaN(row[i]) {
			continue
		}
		u := row[i]
		if e.Dims[i].Kind == box.Choice {
			u = (u + 0.5) / float64(e.Dims[i].Count)
		}
		log, by := p.LogPrior(u)
		sum += log
		if slope != nil {
			slope[i] += weight * by
		}
	}
	return sum
}

// SameRow says whether two rows have the same bits: where parameters are not
// active they are NaN.
func SameRow(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// RowKey tells rows apart that do not agree to nine digits.
func RowKey(row []float64) string {
	var b strings.Builder
	var buf [8]byte
	for _, x := range row {
		binary.LittleEndian.PutUint64(buf[:], math.Float64bits(math.Round(x*1e9)+0))
		b.Write(buf[:])
	}
	return b.String()
}
