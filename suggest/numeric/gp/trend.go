package gp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// The trend is a part of the kernel that makes the model a regression on
// polynomials where the data ask for it. With the mean products
//
//	t = Σ P1(x)P1(y)/d and r = Σ w_p P_p(x)P_p(y)/d, p = 2, 3, 4
//
// over the d numbers and the orthonormal Legendre polynomials on [0, 1], it is
// a² t(t+2), which spans the linear and quadratic functions, or
// a² (t(t+2) + 2r), which also has the main effects of each number up to the
// fourth degree.
const maxDegrees = 4

// Quartic is the layout with main effects up to the fourth degree.
func (l *Layout) Quartic() *Layout {
	q := *l
	q.degrees = maxDegrees
	return &q
}

// polynomials gives the values at x, times the square roots of their weights,
// which are 1, 1, 1/2 and 1/4.
func polynomials(x float64) [maxDegrees]float64 {
	z := 2*x - 1
	z2 := z * z
	return [maxDegrees]float64{
		math.Sqrt(3) * z,
		math.Sqrt(5) / 2 * (3*z2 - 1),
		math.Sqrt(7) / math.Sqrt(8) * (5*z2 - 3) * z,
		3.0 / 16 * ((35*z2-30)*z2 + 3),
	}
}

// slopes gives the derivatives of polynomials.
func slopes(x float64) [maxDegrees]float64 {
	z := 2*x - 1
	z2 := z * z
	return [maxDegrees]float64{
		2 * math.Sqrt(3),
		6 * math.Sqrt(5) * z,
		math.Sqrt(7) / math.Sqrt2 * (15*z2 - 3),
		15.0 / 2 * (7*z2 - 3) * z,
	}
}

// basis writes the polynomials of all numbers of a row, by degree first.
func (l *Layout) basis(row, out []float64) {
	for f, d := range l.numbers {
		x := row[d]
		if x != x {
			x = 0.5
		}
		values := polynomials(x)
		for p, v := range values[:l.degrees] {
			out[p*len(l.numbers)+f] = v
		}
	}
}

// addTrend adds the trend between a row and the first len(out) ones of the
// design, and writes their t to linear.
func (k *kernel) addTrend(basis []float64, d design, out, linear []float64) {
	n := len(k.layout.numbers)
	a := d.basis
	a.Cols = len(out)
	a.Rows = n
	blas64.Gemv(blas.Trans, 1/float64(n), a, vector(basis[:n]), 0, vector(linear))
	for i, t := range linear {
		out[i] += k.trend * t * (t + 2)
	}
	if higher := basis[n:]; len(higher) > 0 {
		a.Rows, a.Data = len(higher), a.Data[n*a.Stride:]
		blas64.Gemv(blas.Trans, 2*k.trend/float64(n), a, vector(higher), 1, vector(out))
	}
}

// own is the variance of a row, without noise, and its t.
func (k *kernel) own(basis []float64) (variance, t float64) {
	if k.trend == 0 {
		return k.signal, 0
	}
	d := len(k.layout.numbers)
	t = dot(basis[:d], basis[:d]) / float64(d)
	return k.signal + k.trend*(t*(t+2)+2*dot(basis[d:], basis[d:])/float64(d)), t
}

// trendSlopes writes the derivatives of the polynomials of all numbers of a row,
// by degree first; 0 where a number is not active.
func (l *Layout) trendSlopes(row, out []float64) {
	for f, d := range l.numbers {
		all := slopes(row[d])
		for p, v := range all[:l.degrees] {
			if v != v {
				v = 0
			}
			out[p*len(l.numbers)+f] = v
		}
	}
}
