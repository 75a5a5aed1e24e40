package gp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// The trend is a part of the kernel that makes the model a regression on
// polynomials where the data ask for it. With the mean product
//
//	t = Σ P(x)P(y)/d
//
// over the d numbers, where P is the orthonormal linear polynomial on [0, 1], it is
// a² t(t+2), which spans the linear and quadratic functions.

// slope of P.
var slope = 2 * math.Sqrt(3)

// basis writes P of all numbers of a row.
func (l *Layout) basis(row, out []float64) {
	for f, d := range l.numbers {
		x := row[d]
		if x != x {
			x = 0.5
		}
		out[f] = slope * (x - 0.5)
	}
}

// addTrend adds the trend between a row and the first len(out) ones of the
// design, and writes their t to linear.
func (k *kernel) addTrend(basis []float64, d design, out, linear []float64) {
	a := d.basis
	a.Cols = len(out)
	blas64.Gemv(blas.Trans, 1/float64(a.Rows), a, vector(basis), 0, vector(linear))
	for i, t := range linear {
		out[i] += k.trend * t * (t + 2)
	}
}

// own is the variance of a row, without noise, and its t.
func (k *kernel) own(basis []float64) (variance, t float64) {
	if k.trend == 0 {
		return k.signal, 0
	}
	t = dot(basis, basis) / float64(len(basis))
	return k.signal + k.trend*t*(t+2), t
}
