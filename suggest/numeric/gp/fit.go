package gp

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/lbfgs"
)

// Prior is the density of the logarithms of the hyperparameters: independent
// normals.
type Prior struct {
	// mean and deviation, in the order of Theta.
	mean, deviation []float64
	// fixed elements stay at their mean.
	fixed []bool
}

// Stationary is the prior of outcomes without a trend: its variance is fixed at
// zero. It follows Hvarfner, Hellsten and Nardi, "Vanilla Bayesian optimization
// performs great in high dimensions" (ICML 2024), in that the lengthscales grow
// with the square root of the number of dimensions.
func Stationary(dims []box.Dim) Prior {
	n := len(dims)
	p := Prior{mean: make([]float64, n+3), deviation: make([]float64, n+3), fixed: make([]bool, n+3)}
	for d := range dims {
		p.mean[d], p.deviation[d] = rootLengthscale(0.5, n), 1
	}
	p.mean[n], p.deviation[n] = 0, 1
	p.mean[n+1], p.deviation[n+1] = math.Log(1e-3), 2
	p.mean[n+2], p.fixed[n+2] = logTrend[0], true
	return p
}

// Smooth is the prior of outcomes that may follow a trend.
func Smooth(dims []box.Dim) Prior {
	p, n := Stationary(dims), len(dims)
	p.mean[n+2], p.deviation[n+2], p.fixed[n+2] = math.Log(0.1), 2, false
	return p
}

// Rough is the prior of losses of trainings: short lengthscales of the numbers, which
// few results move little. With those of Smooth a process takes ten results for the
// whole picture and looks no further. Which choices matter is for the data to say, as
// there. How it was chosen is in docs/benchmarks.md.
func Rough(dims []box.Dim) Prior {
	p := Stationary(dims)
	for d, dim := range dims {
		if dim.Kind != box.Choice {
			p.mean[d], p.deviation[d] = rootLengthscale(0.1, len(dims)), 0.5
		}
	}
	p.deviation[len(dims)] = 0.5
	return p
}

// rootLengthscale is the logarithm of a lengthscale that is so long in one dimension.
func rootLengthscale(length float64, dims int) float64 {
	return math.Log(length) + math.Log(float64(dims))/2
}

// Theta is the mean of the prior.
func (p Prior) Theta() Theta { return slices.Clone(p.mean) }

// add adds the logarithm of the density at t, and its gradient.
func (p Prior) add(t Theta, gradient []float64) float64 {
	sum := 0.0
	for i, x := range t {
		if p.fixed[i] {
			gradient[i] = 0
			continue
		}
		z := (x - p.mean[i]) / p.deviation[i]
		sum -= z * z / 2
		gradient[i] -= z / p.deviation[i]
	}
	return sum
}

// Fit finds the hyperparameters that are most probable given the outcomes
// (MAP), from the given starts.
type Fit struct {
	// Layout of the rows.
	Layout *Layout
	// Prior of the hyperparameters.
	Prior Prior
	// Data to explain.
	Data Data
	// Starts are where it begins, at least one.
	Starts []Theta
	// Iterations of each start at most; 0: 60.
	Iterations int
}

// Best is the best of all starts, and the logarithm of its posterior density up
// to a constant. When ctx ends it is the best so far. When nothing could be
// evaluated it is the mean of the prior, with -Inf.
func (f *Fit) Best(ctx context.Context) (Theta, float64) {
	e := newEvidence(f)
	low, high := bounds(len(f.Layout.dims))
	for i, fixed := range f.Prior.fixed {
		if fixed {
			low[i], high[i] = f.Prior.mean[i], f.Prior.mean[i]
		}
	}
	best, value := f.Prior.Theta(), math.Inf(-1)
	for _, start := range f.Starts {
		t, v := lbfgs.Minimize(func(x, gradient []float64) float64 {
			if ctx.Err() != nil {
				return math.NaN()
			}
			value := e.evaluate(x, gradient)
			blas64.Scal(-1, vector(gradient))
			return -value
		}, start, low, high, lbfgs.Options{Iterations: f.Iterations, Gradient: 1e-2, Progress: 1e-5, FirstStep: 0.5})
		if -v > value {
			best, value = t, -v
		}
	}
	return best, value
}

// evidence computes the log posterior density of hyperparameters.
type evidence struct {
	*Fit
	n      int
	unit   design            // with all lengthscales 1
	trend  []float64         // without its weight, for all pairs of rows; nil: none
	kernel blas64.Symmetric  // Matérn's part
	slopes []float64         // of it
	factor blas64.Triangular // of the whole covariance, then its inverse
	scaled design
}

func newEvidence(f *Fit) *evidence {
	n := len(f.Data.Rows)
	e := &evidence{Fit: f, n: n, factor: lowerTriangle(n, n)}
	unit := newKernel(f.Layout, make(Theta, len(f.Prior.mean)))
	e.unit, e.scaled = unit.design(f.Data.Rows), unit.design(f.Data.Rows)
	size := n * n
	e.kernel = blas64.Symmetric{N: n, Stride: max(1, n), Data: make([]float64, size)}
	e.slopes = make([]float64, size)
	if !f.Prior.fixed[len(f.Prior.fixed)-1] && len(f.Layout.numbers) > 0 {
		e.trend = make([]float64, size)
		unit.trend = 1
		basis, linear := make([]float64, e.unit.basis.Rows), make([]float64, n)
		for i := range n {
			column(e.unit.basis, i, basis)
			unit.addTrend(basis, e.unit, e.row(e.trend, i), linear[:i+1])
		}
	}
	return e
}

// evaluate gives the log density at t, and its gradient. It is NaN where the
// covariance is not positive definite.
func (e *evidence) evaluate(t Theta, gradient []float64) float64 {
	k := newKernel(e.Layout, t)
	if e.trend == nil {
		k.trend = 0
	}
	e.fill(&k, t.Noise())
	covariance := blas64.Symmetric{N: e.n, Stride: e.factor.Stride, Uplo: blas.Lower, Data: e.factor.Data}
	if _, ok := lapack64.Potrf(covariance); !ok {
		return math.NaN()
	}
	alpha := slices.Clone(e.Data.Outcomes)
	whiten(e.factor, alpha)
	value := -dot(alpha, alpha) / 2
	unwhiten(e.factor, alpha)
	for i := range e.n {
		value -= math.Log(e.factor.Data[i*e.factor.Stride+i])
	}
	lapack64.Potri(e.factor)
	clear(gradient)
	e.addGradient(&k, t, alpha, gradient)
	return value + e.Prior.add(t, gradient)
}

// fill writes the lower triangle of the covariance to the factor.
func (e *evidence) fill(k *kernel, noise float64) {
	l := e.Layout
	for f := range l.features() {
		scale := 1.0
		if d := l.dimension(f); f < len(l.numbers) {
			scale = k.inverse[d]
		}
		from, to := rowOf(e.unit.features, f), rowOf(e.scaled.features, f)
		for i, x := range from {
			to[i] = x * scale
		}
	}
	x := make([]float64, l.features())
	for i := range e.n {
		row := e.row(e.kernel.Data, i)
		column(e.scaled.features, i, x)
		k.matern(x, e.scaled, row, e.row(e.slopes, i))
		out := e.row(e.factor.Data, i)
		copy(out, row)
		if k.trend > 0 {
			blas64.Axpy(k.trend, vector(e.row(e.trend, i)), vector(out))
		}
		out[i] += noise * e.Data.weight(i)
	}
}

// row of a lower triangle.
func (e *evidence) row(a []float64, i int) []float64 { return a[i*e.n : i*e.n+i+1] }

// addGradient adds the gradient of the log likelihood: with
// W = (alpha alphaᵀ - K⁻¹)/2 it is tr(W dK) (Rasmussen and Williams 2006,
// equation 5.9).
func (e *evidence) addGradient(k *kernel, t Theta, alpha, gradient []float64) {
	dims := t.dims()
	bySignal, byNoise, byTrend := 0.0, 0.0, 0.0
	pulls := make([]float64, e.n)
	for i := range e.n {
		inverse, kernel, slopes := e.row(e.factor.Data, i), e.row(e.kernel.Data, i), e.row(e.slopes, i)
		for j, v := range kernel {
			w := alpha[i]*alpha[j] - inverse[j] // both triangles
			if j == i {
				w /= 2
				byNoise += w * e.Data.weight(i)
			}
			bySignal += w * v
			pulls[j] = w * slopes[j]
			if k.trend > 0 {
				byTrend += w * e.trend[i*e.n+j]
			}
		}
		e.addLengthscales(k, i, pulls[:i], gradient)
	}
	gradient[dims] += bySignal
	gradient[dims+1] += byNoise * (t.Noise() - MinNoise)
	gradient[dims+2] += byTrend * k.trend
}

// addLengthscales adds what row i says, from the pulls between it and those
// before it.
func (e *evidence) addLengthscales(k *kernel, i int, pulls, gradient []float64) {
	l := e.Layout
	for f := range l.features() {
		others, d := rowOf(e.scaled.features, f), l.dimension(f)
		x, sum := others[i], 0.0
		if f >= len(l.numbers) {
			for j, p := range pulls {
				if others[j] != x {
					sum += p * l.apart(d, others[j], x)
				}
			}
			sum *= k.inverse[d] * k.inverse[d]
		} else {
			for j, p := range pulls {
				r := x - others[j]
				sum += p * r * r
			}
		}
		gradient[d] += sum
	}
}
