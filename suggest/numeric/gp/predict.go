package gp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// minVariance keeps the posterior variance positive, relative to the signal.
const minVariance = 1e-12

// Prediction is the posterior of the noiseless outcome at some rows.
type Prediction struct {
	Mean, Variance []float64
	// MeanGradient and VarianceGradient have one element for each row and
	// dimension, 0 for choices and inactive coordinates; empty when not asked
	// for.
	MeanGradient, VarianceGradient []float64
}

// Predict the rows.
func (m *Model) Predict(rows [][]float64, gradient bool) Prediction {
	dims := 0
	if gradient {
		dims = len(m.layout.dims)
	}
	p := Prediction{
		Mean: make([]float64, len(rows)), Variance: make([]float64, len(rows)),
		MeanGradient: make([]float64, len(rows)*dims), VarianceGradient: make([]float64, len(rows)*dims),
	}
	q := m.newQuery()
	for i, row := range rows {
		p.Mean[i], p.Variance[i] = q.predict(row, gradient)
		if gradient {
			q.gradients(row, p.MeanGradient[i*dims:(i+1)*dims], p.VarianceGradient[i*dims:(i+1)*dims])
		}
	}
	return p
}

// query is the prediction of one row, with memory for the next ones.
type query struct {
	*Model
	x, basis []float64 // features and polynomials
	kernel   []float64 // covariances with the rows of the model
	slopes   []float64
	linear   []float64 // t of the trend with the rows of the model
	white    []float64 // L⁻¹ kernel, and then K⁻¹ kernel
	pull     []float64
	sums     []float64
}

func (m *Model) newQuery() *query {
	n, f, b := m.Len(), m.layout.features(), m.design.basis.Rows
	buf := make([]float64, 5*n+f+b+max(f, b))
	take := func(size int) []float64 {
		part := buf[:size:size]
		buf = buf[size:]
		return part
	}
	return &query{
		Model: m, x: take(f), basis: take(b), sums: take(max(f, b)),
		kernel: take(n), slopes: take(n), linear: take(n), white: take(n), pull: take(n),
	}
}

func (q *query) predict(row []float64, gradient bool) (mean, variance float64) {
	q.layout.expand(row, q.inverse, q.x)
	if q.trend > 0 {
		q.layout.basis(row, q.basis)
	}
	slopes := q.slopes
	if !gradient {
		slopes = nil
	}
	q.covariances(q.x, q.basis, q.kernel, slopes, q.linear)
	mean = dot(q.kernel[:len(q.alpha)], q.alpha)
	copy(q.white, q.kernel)
	whiten(q.lower, q.white)
	own, _ := q.own(q.basis)
	return mean, math.Max(own-dot(q.white, q.white), minVariance*q.signal)
}

// gradients of the row that was predicted last.
func (q *query) gradients(row, byMean, byVariance []float64) {
	unwhiten(q.lower, q.white)
	clear(byMean)
	clear(byVariance)
	q.addMatern(row, q.alpha, 1, byMean)
	q.addMatern(row, q.white, -2, byVariance)
	if q.trend == 0 {
		return
	}
	q.addTrendOf(row, q.alpha, 1, byMean)
	q.addTrendOf(row, q.white, -2, byVariance)
	_, t := q.own(q.basis)
	copy(q.sums, q.basis)
	blas64.Scal(1+t, vector(q.sums[:len(q.layout.numbers)]))
	q.addSlopes(row, 2, byVariance)
}

// addMatern adds scale times the gradient of the sum of the weighted
// covariances, without the trend's.
func (q *query) addMatern(row, weights []float64, scale float64, out []float64) {
	pull, sum := q.pull[:len(weights)], 0.0
	for i, w := range weights {
		pull[i] = w * q.slopes[i]
		sum += pull[i]
	}
	numbers := len(q.layout.numbers)
	q.sumsOf(q.design.features, 0, numbers, pull)
	for f, d := range q.layout.numbers {
		if row[d] == row[d] {
			out[d] -= scale * (q.x[f]*sum - q.sums[f]) * q.inverse[d]
		}
	}
}

// addTrendOf is the same for the trend.
func (q *query) addTrendOf(row, weights []float64, scale float64, out []float64) {
	pull := q.pull[:len(weights)]
	for i, w := range weights {
		pull[i] = w * (1 + q.linear[i])
	}
	q.sumsOf(q.design.basis, 0, len(q.layout.numbers), pull)
	q.addSlopes(row, scale, out)
}

// addSlopes adds what the sums of the polynomials are by the numbers that are active.
func (q *query) addSlopes(row []float64, scale float64, out []float64) {
	each := scale * 2 * q.trend / float64(len(q.layout.numbers)) * slope
	for f, d := range q.layout.numbers {
		if row[d] == row[d] {
			out[d] += each * q.sums[f]
		}
	}
}

// sumsOf writes the products of rows of a with pull, from row first to end.
func (q *query) sumsOf(a blas64.General, first, end int, pull []float64) {
	if first == end || len(pull) == 0 {
		return
	}
	a.Rows, a.Cols, a.Data = end-first, len(pull), a.Data[first*a.Stride:]
	blas64.Gemv(blas.NoTrans, 1, a, vector(pull), 0, vector(q.sums[first:end]))
}
