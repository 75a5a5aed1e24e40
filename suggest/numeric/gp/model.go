package gp

import (
	"context"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/dense"
)

// Model is a Gaussian process with fixed hyperparameters over some rows. Its
// kernel is
//
//	k(x, y) = s² m(r) + a² q(x, y)
//
// with Matérn's m over the distance r, in which each dimension has its own
// lengthscale, and the trend q; see maxDegrees. Its mean is zero.
//
// Outcomes belong to the first rows; what was appended after SetOutcomes has
// none and makes the variance smaller only (pending points).
type Model struct {
	layout  *Layout
	theta   Theta
	inverse []float64 // 1/lengthscale, by dimension
	signal  float64
	trend   float64
	jitter  float64
	columns [][]float64 // scaled features
	basis   [][]float64 // the polynomials that the trend is made of
	weights []float64   // of the noise, by row
	factor  dense.Factor
	alpha   []float64 // K⁻¹y, for the rows with outcomes
	space   workspace
}

// NewModel is a model without rows.
func NewModel(layout *Layout, theta Theta) *Model {
	m := &Model{layout: layout, theta: slices.Clone(theta), signal: theta.Signal(), trend: theta.trend()}
	m.inverse = make([]float64, len(layout.dims))
	for d := range m.inverse {
		m.inverse[d] = math.Exp(-theta[d])
	}
	m.columns = make([][]float64, len(layout.columns))
	m.basis = make([][]float64, layout.degrees*layout.numeric)
	if m.trend <= 2*math.Exp(logTrend[0]) || layout.numeric == 0 {
		m.trend = 0
	}
	return m
}

// Len is the number of rows.
func (m *Model) Len() int { return m.factor.Len() }

// Theta are the hyperparameters.
func (m *Model) Theta() Theta { return m.theta }

// Append adds rows; weights multiply the variance of the noise of each (nil: 1).
// Where the matrix is not positive definite, the diagonal is raised by jitter,
// up to a thousandth of the signal. ok is false when that was not enough, and
// the model is empty then.
func (m *Model) Append(rows [][]float64, weights []float64) (ok bool) {
	m.extend(m.Len(), rows, weights)
	for m.jitter <= 1e-3 {
		if m.factor.Append(len(m.weights)-m.factor.Len(), m.fill) {
			return true
		}
		m.factor.Truncate(0)
		m.jitter = math.Max(1e-8, 10*m.jitter)
	}
	m.cut(0)
	m.jitter = 0
	return false
}

// AppendUntil is Append, which is given up, and the model empty, when ctx ends.
func (m *Model) AppendUntil(ctx context.Context, rows [][]float64, weights []float64) (ok bool) {
	m.factor.Ended = func() bool { return ctx.Err() != nil }
	defer func() { m.factor.Ended = nil }()
	return m.Append(rows, weights)
}

// AppendPending adds one row without outcome; ok is false, and nothing changed,
// when the model cannot tell it apart from the others.
func (m *Model) AppendPending(row []float64) (ok bool) {
	first := m.Len()
	m.extend(first, [][]float64{row}, nil)
	if ok = m.factor.Append(1, m.fill); !ok {
		m.cut(first)
	}
	return ok
}

// Truncate takes rows off until n are left.
func (m *Model) Truncate(n int) {
	m.factor.Truncate(n)
	m.cut(m.factor.Len())
}

func (m *Model) cut(n int) {
	for f := range m.columns {
		m.columns[f] = m.columns[f][:n]
	}
	for f := range m.basis {
		m.basis[f] = m.basis[f][:n]
	}
	m.weights = m.weights[:n]
}

func (m *Model) extend(first int, rows [][]float64, weights []float64) {
	m.cut(first)
	features, basis := make([]float64, len(m.layout.columns)), make([]float64, len(m.basis))
	for i, row := range rows {
		m.layout.expand(row, features)
		m.layout.polynomialsOf(features, basis)
		for f, x := range basis {
			m.basis[f] = append(m.basis[f], x)
		}
		m.layout.scaled(features, m.inverse)
		for f, x := range features {
			m.columns[f] = append(m.columns[f], x)
		}
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		m.weights = append(m.weights, w)
	}
}

// fill writes row i of the covariance.
func (m *Model) fill(i int, out []float64) {
	query := make([]float64, len(m.columns))
	for f := range query {
		query[f] = m.columns[f][i]
	}
	m.layout.distances(query, m.columns, m.inverse, out)
	m.layout.profile(out, nil)
	dense.Scale(m.signal, out)
	if m.trend > 0 {
		m.addTrend(m.trend, m.basisOf(i), out, make([]float64, len(out)))
	}
	out[i] += m.theta.Noise()*m.weights[i] + m.jitter*m.signal
}

// basisOf is the polynomials of row i.
func (m *Model) basisOf(i int) []float64 {
	out := make([]float64, len(m.basis))
	for f := range out {
		out[f] = m.basis[f][i]
	}
	return out
}

// SetOutcomes gives the rows their outcomes, which should have mean 0 and
// variance 1.
func (m *Model) SetOutcomes(y []float64) {
	n := m.Len()
	step := dense.Padded(n)
	x, white := make([]float64, step), make([]float64, step)
	copy(x, y[:n])
	m.factor.Whiten(1, x, white, step)
	m.factor.Unwhiten(1, white, x, step)
	m.alpha = x[:n]
}

// LeaveOneOut gives, for each row, the mean and variance that the model without
// it predicts for its noisy outcome y (Rasmussen and Williams 2006, equation
// 5.12). It must be called before pending rows are appended.
func (m *Model) LeaveOneOut(y []float64) (mean, variance []float64) {
	n := m.Len()
	mean, variance = make([]float64, n), make([]float64, n)
	m.factor.InverseDiagonal(variance)
	for i := range n {
		variance[i] = 1 / variance[i]
		mean[i] = y[i] - m.alpha[i]*variance[i]
	}
	return mean, variance
}

// Fitted are the posterior means at the rows with the given outcomes.
func (m *Model) Fitted(y []float64) []float64 {
	out := make([]float64, len(m.alpha))
	for i, a := range m.alpha {
		out[i] = y[i] - (m.theta.Noise()*m.weights[i]+m.jitter*m.signal)*a
	}
	return out
}
