package gp

import (
	"context"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/dense"
	"github.com/vernier-ml/vernier/suggest/numeric/lbfgs"
)

// Prior is the density of the logarithms of the hyperparameters: independent
// normals. It follows Hvarfner, Hellsten and Nardi, "Vanilla Bayesian
// optimization performs great in high dimensions" (ICML 2024), in that the
// lengthscales grow with the square root of the number of dimensions.
type Prior struct {
	// mean and deviation, in the order of Theta.
	mean, deviation []float64
	// fixed elements stay at their mean.
	fixed []bool
}

// NewPrior is the prior for a number of dimensions. Without a trend, its
// variance is fixed at zero.
func NewPrior(dims int, trend bool) Prior {
	p := Prior{mean: make([]float64, dims+3), deviation: make([]float64, dims+3), fixed: make([]bool, dims+3)}
	for d := range dims {
		p.mean[d] = math.Log(0.5) + math.Log(float64(dims))/2
		p.deviation[d] = 1
	}
	p.mean[dims], p.deviation[dims] = 0, 1
	p.mean[dims+1], p.deviation[dims+1] = math.Log(1e-3), 2
	p.mean[dims+2], p.deviation[dims+2] = math.Log(0.1), 2
	if !trend {
		p.mean[dims+2], p.fixed[dims+2] = logTrend[0], true
	}
	return p
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
	// Rows and their Outcomes, which should have mean 0 and variance 1.
	Rows     [][]float64
	Outcomes []float64
	// Weights multiply the variance of the noise by row; nil: 1.
	Weights []float64
	// Starts are where it begins, at least one.
	Starts []Theta
	// Iterations of each start at most; 0: 60.
	Iterations int
}

// Best is the best of all starts, and the logarithm of its posterior density up
// to a constant. When ctx ends it is the best so far. When nothing could be
// evaluated it is the mean of the prior, with -Inf.
func (f *Fit) Best(ctx context.Context) (Theta, float64) {
	e := newEvidence(ctx, f)
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
			if ctx.Err() != nil {
				return math.NaN() // it may have ended in the middle
			}
			for i := range gradient {
				gradient[i] = -gradient[i]
			}
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
	fit      *Fit
	n, step  int
	features [][]float64 // by column, not scaled
	model    Model
	kernel   []float64 // without noise, row by row, step apart
	slopes   []float64
	products []float64 // the trend, without its weight
	inverse  []float64
	pulls    []float64 // of four rows: four numbers for each row before them
	sums     []float64 // of the four rows, by column
}

// newEvidence ends early with ctx; so does what is evaluated, which is then of no
// use.
func newEvidence(ctx context.Context, f *Fit) *evidence {
	n := len(f.Rows)
	e := &evidence{fit: f, n: n, step: dense.Padded(n)}
	flat := NewModel(f.Layout, make(Theta, len(f.Prior.mean))) // all lengthscales are 1
	flat.extend(0, f.Rows, f.Weights)
	e.features = flat.columns
	size := n * e.step
	buf := make([]float64, 3*size)
	e.kernel, e.slopes, e.inverse = buf[:size], buf[size:2*size], buf[2*size:]
	e.pulls, e.sums = make([]float64, 4*n), make([]float64, 4*(len(e.features)+3))
	last := len(f.Prior.fixed) - 1
	if !f.Prior.fixed[last] && f.Layout.numeric > 0 {
		e.products = make([]float64, size)
		scratch := make([]float64, n)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			flat.addTrend(1, flat.basisOf(i), e.products[i*e.step:i*e.step+i+1], scratch)
		}
	}
	e.model = *flat
	e.model.factor.Ended = func() bool { return ctx.Err() != nil }
	e.model.columns = make([][]float64, len(e.features))
	for c := range e.model.columns {
		e.model.columns[c] = make([]float64, n)
	}
	return e
}

// evaluate gives the log density at t, and its gradient. It is NaN where the
// covariance is not positive definite.
func (e *evidence) evaluate(t Theta, gradient []float64) float64 {
	m := &e.model
	m.signal, m.trend = t.Signal(), t.trend()
	if e.products == nil {
		m.trend = 0
	}
	for d := range m.inverse {
		m.inverse[d] = math.Exp(-t[d])
	}
	for f, c := range m.layout.columns {
		scale := 1.0
		if !c.choice {
			scale = m.inverse[c.dim]
		}
		for i, x := range e.features[f] {
			m.columns[f][i] = x * scale
		}
	}
	noise := t.Noise()
	m.factor.Truncate(0)
	if !m.factor.Append(e.n, func(i int, row []float64) { e.fill(i, row, noise) }) {
		return math.NaN()
	}
	m.SetOutcomes(e.fit.Outcomes)
	m.factor.Inverse(e.inverse, e.step)
	clear(gradient)
	if m.factor.Ended() {
		return math.NaN()
	}
	e.addGradient(t, gradient)
	value := -m.factor.LogDeterminant() / 2
	for i, y := range e.fit.Outcomes {
		value -= y * m.alpha[i] / 2
	}
	return value + e.fit.Prior.add(t, gradient)
}

func (e *evidence) fill(i int, row []float64, noise float64) {
	m := &e.model
	query := make([]float64, len(m.columns))
	for f := range query {
		query[f] = m.columns[f][i]
	}
	m.layout.distances(query, m.columns, m.inverse, row)
	slopes := e.slopes[i*e.step : i*e.step+i+1]
	m.layout.profile(row, slopes)
	kernel := e.kernel[i*e.step : i*e.step+i+1]
	for j := range row {
		row[j] *= m.signal
		kernel[j] = row[j]
	}
	if m.trend > 0 {
		for j, q := range e.products[i*e.step : i*e.step+i+1] {
			row[j] += m.trend * q
		}
	}
	row[i] += noise * m.weights[i]
}

// addGradient adds the gradient of the log likelihood: with
// W = (alpha alphaᵀ - K⁻¹)/2 it is tr(W dK) (Rasmussen and Williams 2006,
// equation 5.9).
func (e *evidence) addGradient(t Theta, gradient []float64) {
	m := &e.model
	dims := t.dims()
	bySignal, byNoise, byTrend := 0.0, 0.0, 0.0
	for first := 0; first < e.n; first += 4 {
		rows := min(4, e.n-first)
		pulls := e.pulls[:4*(first+rows-1)]
		clear(pulls)
		for q := range rows {
			i := first + q
			at := i * e.step
			a := m.alpha[i]
			inverse, kernel, slopes := e.inverse[at:at+i], e.kernel[at:at+i], e.slopes[at:at+i]
			for j, k := range kernel {
				w := a*m.alpha[j] - inverse[j] // both triangles
				bySignal += w * k
				pulls[4*j+q] = w * m.signal * slopes[j]
				if m.trend > 0 {
					byTrend += w * e.products[at+j]
				}
			}
			w := (a*a - e.inverse[at+i]) / 2
			bySignal += w * e.kernel[at+i]
			byNoise += w * m.weights[i]
			if m.trend > 0 {
				byTrend += w * e.products[at+i]
			}
		}
		e.addLengthscales(first, rows, pulls, gradient)
	}
	gradient[dims] += bySignal
	gradient[dims+1] += byNoise * (t.Noise() - MinNoise)
	gradient[dims+2] += byTrend * m.trend
}

// addLengthscales adds what at most four rows say, from the pulls between them
// and those before them.
func (e *evidence) addLengthscales(first, rows int, pulls, gradient []float64) {
	m := &e.model
	for f := 0; f < m.layout.plain; f += 4 {
		var x [16]float64
		var group [4][]float64
		for k := range group {
			group[k] = m.columns[min(f+k, m.layout.plain-1)]
			copy(x[4*k:], group[k][first:first+rows])
		}
		sums := dense.WeightedSquares(pulls, &x, &group)
		copy(e.sums[4*f:], sums[:])
	}
	for f := m.layout.plain; f < len(m.columns); f++ {
		for q := range rows {
			e.sums[4*f+q] = e.pullOf(f, first+q, pulls[min(q, len(pulls)):])
		}
	}
	for q := range rows {
		for f, c := range m.layout.columns {
			gradient[c.dim] += e.sums[4*f+q]
		}
	}
}

// pullOf is what row i says of a column behind the first choice. The pulls of
// the row are each fourth one.
func (e *evidence) pullOf(f, i int, pulls []float64) float64 {
	m := &e.model
	column, sum := m.columns[f], 0.0
	if c := m.layout.columns[f]; c.choice {
		for j, y := range column[:i] {
			if column[i] != y {
				sum += pulls[4*j]
			}
		}
		return sum * (m.inverse[c.dim] * m.inverse[c.dim])
	}
	for j, y := range column[:i] {
		d := column[i] - y
		sum += float64(float64(pulls[4*j]*d) * d)
	}
	return sum
}
