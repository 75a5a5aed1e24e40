// Package gp has Gaussian process regression over mixed spaces and the search
// for the point that is most worth trying next under it. The outcomes are
// losses: smaller is better.
package gp

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// apart is the distance, on the unit scale, between an inactive coordinate and
// the middle of the active ones.
const apart = math.Sqrt2 / 2

// Layout says how the rows of a space become features: one for each dimension,
// and a second one, the indicator, for a numeric dimension that is not always
// active. There an inactive coordinate (NaN) lies beside the middle of the
// active ones: this keeps all distances Euclidean, and so the kernel positive
// definite, which a constant distance would not. An inactive choice is a choice
// of its own.
type Layout struct {
	dims       []box.Dim
	numbers    []int // dimensions of the features that are values; the trend sees these
	indicators []int // dimensions of the features that follow
	choices    []int // dimensions of the last features
}

// NewLayout is for rows over the dimensions; optional says which of them may be
// NaN, nil that none may.
func NewLayout(dims []box.Dim, optional []bool) *Layout {
	l := &Layout{dims: dims}
	for d, dim := range dims {
		if dim.Kind == box.Choice {
			l.choices = append(l.choices, d)
			continue
		}
		l.numbers = append(l.numbers, d)
		if optional != nil && optional[d] {
			l.indicators = append(l.indicators, d)
		}
	}
	return l
}

// Dims are the dimensions.
func (l *Layout) Dims() []box.Dim { return l.dims }

// euclidean is how many features have a Euclidean distance.
func (l *Layout) euclidean() int { return len(l.numbers) + len(l.indicators) }

func (l *Layout) features() int { return l.euclidean() + len(l.choices) }

// dimension of a feature.
func (l *Layout) dimension(f int) int {
	if f < len(l.numbers) {
		return l.numbers[f]
	}
	if f -= len(l.numbers); f < len(l.indicators) {
		return l.indicators[f]
	}
	return l.choices[f-len(l.indicators)]
}

// expand writes the features of a row, numbers and indicators in units of their
// lengthscales.
func (l *Layout) expand(row, inverse, features []float64) {
	for f, d := range l.numbers {
		x := row[d]
		if x != x {
			x = 0.5
		}
		features[f] = x * inverse[d]
	}
	features = features[len(l.numbers):]
	for f, d := range l.indicators {
		features[f] = 0
		if row[d] != row[d] {
			features[f] = apart * inverse[d]
		}
	}
	features = features[len(l.indicators):]
	for f, d := range l.choices {
		features[f] = row[d]
		if row[d] != row[d] {
			features[f] = -1
		}
	}
}
