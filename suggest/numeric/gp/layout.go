// Package gp has Gaussian process regression over mixed spaces and the search
// for the point that is most worth trying next under it. The outcomes are
// losses: smaller is better.
package gp

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/dense"
)

// apart is the distance, on the unit scale, between an inactive coordinate and
// the middle of the active ones.
const apart = math.Sqrt2 / 2

// Layout says how the rows of a space become columns of features: one for each
// dimension, and a second one for a numeric dimension that is not always
// active. There an inactive coordinate (NaN) lies beside the middle of the
// active ones: this keeps all distances Euclidean, and so the kernel positive
// definite, which a constant distance would not. An inactive choice is a choice
// of its own.
type Layout struct {
	dims    []box.Dim
	columns []column
	profile profile
	numeric int // columns of values that the trend sees
	degrees int // of the polynomials in one number
	plain   int // columns before the first choice
}

type column struct {
	dim       int
	choice    bool
	indicator bool
}

// NewLayout is for rows over the dimensions; optional says which of them may be
// NaN, nil that none may.
func NewLayout(dims []box.Dim, optional []bool) *Layout {
	l := &Layout{dims: dims, profile: product, degrees: 1}
	for i, d := range dims {
		choice := d.Kind == box.Choice
		l.columns = append(l.columns, column{dim: i, choice: choice})
		if choice {
			continue
		}
		l.profile = matern52
		l.numeric++
		if optional != nil && optional[i] {
			l.columns = append(l.columns, column{dim: i, indicator: true})
		}
	}
	for l.plain < len(l.columns) && !l.columns[l.plain].choice {
		l.plain++
	}
	return l
}

// Dims are the dimensions.
func (l *Layout) Dims() []box.Dim { return l.dims }

// expand writes the features of a row.
func (l *Layout) expand(row, features []float64) {
	for f, c := range l.columns {
		x := row[c.dim]
		inactive := x != x
		switch {
		case c.choice && inactive:
			x = -1
		case c.indicator && inactive:
			x = apart
		case c.indicator:
			x = 0
		case inactive:
			x = 0.5
		}
		features[f] = x
	}
}

// scaled brings features to the scale on which distances are measured.
func (l *Layout) scaled(features, inverse []float64) {
	for f, c := range l.columns {
		if !c.choice {
			features[f] *= inverse[c.dim]
		}
	}
}

// distances writes the squared distances between a query and the first
// len(out) rows of the scaled columns.
func (l *Layout) distances(query []float64, columns [][]float64, inverse, out []float64) {
	clear(out)
	n := len(out)
	f := 0
	for ; f+4 <= l.plain; f += 4 {
		dense.AddSquares4((*[4]float64)(query[f:]), columns[f], columns[f+1], columns[f+2], columns[f+3], out)
	}
	for ; f+2 <= l.plain; f += 2 {
		dense.AddSquares2(query[f], query[f+1], columns[f], columns[f+1], out)
	}
	for ; f < len(l.columns); f++ {
		x, a := query[f], columns[f][:n]
		if !l.columns[f].choice {
			for i := range out {
				s := x - a[i]
				out[i] += float64(s * s)
			}
			continue
		}
		far := float64(inverse[l.columns[f].dim] * inverse[l.columns[f].dim])
		for i := range out {
			if a[i] != x {
				out[i] += far
			}
		}
	}
}
