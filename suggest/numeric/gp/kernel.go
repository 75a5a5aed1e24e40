package gp

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
)

// kernel is the covariance of two rows:
//
//	k(x, y) = s² m(r) + a² q(x, y)
//
// with Matérn's m of smoothness 5/2 over the distance r, in which each dimension
// has its own lengthscale, or exp(-r²) where all dimensions are choices, and the
// trend q; see addTrend.
type kernel struct {
	layout  *Layout
	inverse []float64 // 1/lengthscale, by dimension
	signal  float64   // s²
	trend   float64   // a²; 0: none
}

func newKernel(layout *Layout, theta Theta) kernel {
	k := kernel{layout: layout, inverse: make([]float64, len(layout.dims)), signal: theta.Signal(), trend: theta.trend()}
	for d := range k.inverse {
		k.inverse[d] = math.Exp(-theta[d])
	}
	if k.trend <= 2*math.Exp(logTrend[0]) || len(layout.numbers) == 0 {
		k.trend = 0
	}
	return k
}

// design has the features and the polynomials of some rows, by column, so that
// what is computed for one row with all others runs along memory.
type design struct {
	features blas64.General
	basis    blas64.General
}

func (k *kernel) design(rows [][]float64) design {
	l, n := k.layout, len(rows)
	d := design{features: general(l.features(), n), basis: general(len(l.numbers), n)}
	x, basis := make([]float64, d.features.Rows), make([]float64, d.basis.Rows)
	for i, row := range rows {
		l.expand(row, k.inverse, x)
		setColumn(d.features, i, x)
		l.basis(row, basis)
		setColumn(d.basis, i, basis)
	}
	return d
}

func general(rows, columns int) blas64.General {
	return blas64.General{Rows: rows, Cols: columns, Stride: max(1, columns), Data: make([]float64, rows*columns)}
}

func setColumn(a blas64.General, column int, x []float64) {
	for i := range a.Rows {
		a.Data[i*a.Stride+column] = x[i]
	}
}

func rowOf(a blas64.General, i int) []float64 { return a.Data[i*a.Stride : i*a.Stride+a.Cols] }

// matern writes s² m between the row with the features x and the first len(out)
// rows of the design, and the slopes -2 s² dm/d(r²) unless slopes is nil.
func (k *kernel) matern(x []float64, d design, out, slopes []float64) {
	k.distances(x, d, out)
	if len(k.layout.numbers) == 0 {
		for i, r2 := range out {
			out[i] = k.signal * math.Exp(-r2)
		}
		for i := range slopes {
			slopes[i] = 2 * out[i]
		}
		return
	}
	// Rasmussen and Williams, "Gaussian processes for machine learning", 2006,
	// equation 4.17.
	for i, r2 := range out {
		r := math.Sqrt(5 * r2)
		e := k.signal * math.Exp(-r)
		out[i] = (1 + r + r*r/3) * e
		if slopes != nil {
			slopes[i] = 5.0 / 3 * (1 + r) * e
		}
	}
}

// distances writes squared distances.
func (k *kernel) distances(x []float64, d design, out []float64) {
	clear(out)
	first := len(k.layout.numbers)
	for f := 0; f < first; f += 2 { // two at once, as memory takes as long as the sums
		g := min(f+1, first-1)
		v, w, both := x[f], x[g], float64(g-f)
		a, b := rowOf(d.features, f)[:len(out)], rowOf(d.features, g)[:len(out)]
		for i := range out {
			t, u := v-a[i], (w-b[i])*both
			out[i] += t*t + u*u
		}
	}
	for f, dim := range k.layout.choices {
		far := k.inverse[dim] * k.inverse[dim]
		v := x[first+f]
		for i, y := range rowOf(d.features, first+f)[:len(out)] {
			if y != v {
				out[i] += far * k.layout.apart(dim, y, v)
			}
		}
	}
}

func vector(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Inc: 1, Data: x} }
