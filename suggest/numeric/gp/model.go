package gp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Data is what a Model learns from.
type Data struct {
	Rows [][]float64
	// Outcomes of the rows; they should have mean 0 and variance 1.
	Outcomes []float64
	// Weights multiply the variance of the noise by row; nil: 1.
	Weights []float64
}

// weight of the i-th row.
func (d Data) weight(i int) float64 {
	if d.Weights == nil {
		return 1
	}
	return d.Weights[i]
}

// Model is a Gaussian process with mean zero and fixed hyperparameters that is
// conditioned on data, and on pending rows, whose outcomes are not known yet:
// these make the variance smaller only.
//
// It is not safe for use from several goroutines at once.
type Model struct {
	kernel
	theta   Theta
	data    Data
	jitter  float64
	design  design
	lower   blas64.Triangular // L of K = L Lᵀ
	alpha   []float64         // K⁻¹ y, of the rows with outcomes
	pending [][]float64
	sizes   []int // how many rows there were after each pending one
}

// Condition is the model of the data. Where the covariance is not positive
// definite, its diagonal is raised, up to a thousandth of the signal; ok is
// false when that was not enough.
func Condition(layout *Layout, theta Theta, data Data) (m *Model, ok bool) {
	m = &Model{kernel: newKernel(layout, theta), theta: slices.Clone(theta), data: data}
	m.design = m.kernel.design(data.Rows)
	n := len(data.Rows)
	m.lower = lowerTriangle(n, n)
	k := blas64.Symmetric{N: n, Stride: m.lower.Stride, Uplo: blas.Lower, Data: m.lower.Data}
	for {
		m.covariance(k)
		if _, ok = lapack64.Potrf(k); ok || n == 0 {
			break
		}
		if m.jitter = math.Max(1e-8, 10*m.jitter); m.jitter > 1e-3 {
			return nil, false
		}
	}
	m.alpha = slices.Clone(data.Outcomes)
	whiten(m.lower, m.alpha)
	unwhiten(m.lower, m.alpha)
	return m, true
}

func lowerTriangle(n, stride int) blas64.Triangular {
	stride = max(1, stride)
	return blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: stride, Data: make([]float64, stride*stride)}
}

// covariance of the rows, with noise.
func (m *Model) covariance(k blas64.Symmetric) {
	x, basis := make([]float64, m.design.features.Rows), make([]float64, m.design.basis.Rows)
	linear := make([]float64, k.N)
	for i := range k.N {
		column(m.design.features, i, x)
		column(m.design.basis, i, basis)
		m.covariances(x, basis, k.Data[i*k.Stride:i*k.Stride+i+1], nil, linear)
		k.Data[i*k.Stride+i] += m.theta.Noise()*m.data.weight(i) + m.jitter*m.signal
	}
}

func column(a blas64.General, j int, x []float64) {
	for i := range x {
		x[i] = a.Data[i*a.Stride+j]
	}
}

// covariances of a row with the first len(out) ones; linear is memory for as
// many.
func (m *Model) covariances(x, basis, out, slopes, linear []float64) {
	m.matern(x, m.design, out, slopes)
	if m.trend > 0 && len(out) > 0 {
		m.addTrend(basis, m.design, out, linear[:len(out)])
	}
}

// whiten turns x into L⁻¹ x. It is a call of Trsm, whose inner loops are
// vectorised; those of Trsv are not.
func whiten(lower blas64.Triangular, x []float64) {
	blas64.Trsm(blas.Right, blas.Trans, 1, lower, rowVector(x))
}

// unwhiten turns x into L⁻ᵀ x: after whiten the result is K⁻¹ x.
func unwhiten(lower blas64.Triangular, x []float64) {
	blas64.Trsm(blas.Right, blas.NoTrans, 1, lower, rowVector(x))
}

func rowVector(x []float64) blas64.General {
	return blas64.General{Rows: 1, Cols: len(x), Stride: max(1, len(x)), Data: x}
}

// Len is the number of rows, pending ones included.
func (m *Model) Len() int { return m.lower.N }

// Theta are the hyperparameters.
func (m *Model) Theta() Theta { return m.theta }

// Expect makes the rows the pending ones. A row that the model cannot tell
// apart from others adds nothing. What the rows have in common with the pending
// ones before, at the beginning, costs nothing; each other row costs O(n²).
func (m *Model) Expect(rows [][]float64) {
	same := 0
	for same < min(len(m.pending), len(rows)) && sameRow(m.pending[same], rows[same]) {
		same++
	}
	n := len(m.data.Rows)
	if same > 0 {
		n = m.sizes[same-1]
	}
	m.truncate(n)
	m.pending, m.sizes = m.pending[:same:same], m.sizes[:same]
	m.reserve(n + len(rows) - same)
	for _, row := range rows[same:] {
		m.append(row)
		m.pending, m.sizes = append(m.pending, row), append(m.sizes, m.Len())
	}
}

func sameRow(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
}

func (m *Model) truncate(n int) { m.lower.N, m.design.features.Cols, m.design.basis.Cols = n, n, n }

// reserve makes room for n rows.
func (m *Model) reserve(n int) {
	if n <= m.lower.Stride {
		return
	}
	n += n / 8
	lower := lowerTriangle(m.lower.N, n)
	for i := range lower.N {
		copy(lower.Data[i*n:], m.lower.Data[i*m.lower.Stride:][:i+1])
	}
	m.lower = lower
	m.design.features, m.design.basis = widened(m.design.features, n), widened(m.design.basis, n)
}

func widened(a blas64.General, stride int) blas64.General {
	out := general(a.Rows, stride)
	for i := range a.Rows {
		copy(rowOf(out, i), rowOf(a, i))
	}
	out.Cols = a.Cols
	return out
}

// append adds a row to the factor, unless it is not positive definite then.
func (m *Model) append(row []float64) {
	n := m.lower.N
	one := m.kernel.design([][]float64{row})
	x, basis := one.features.Data, one.basis.Data
	k := m.lower.Data[n*m.lower.Stride:][:n+1]
	m.covariances(x, basis, k[:n], nil, make([]float64, n))
	whiten(m.lower, k[:n])
	own, _ := m.own(basis)
	rest := own + m.theta.Noise() + m.jitter*m.signal - dot(k[:n], k[:n])
	if !(rest > 0) {
		return
	}
	k[n] = math.Sqrt(rest)
	m.truncate(n + 1)
	setColumn(m.design.features, n, x)
	setColumn(m.design.basis, n, basis)
}

func dot(x, y []float64) float64 { return blas64.Dot(vector(x), vector(y)) }

// LeaveOneOut gives, for each row with an outcome, the mean and variance that
// the model without it predicts for its noisy outcome (Rasmussen and Williams
// 2006, equation 5.12).
func (m *Model) LeaveOneOut() (mean, variance []float64) {
	n := len(m.data.Rows)
	mean, variance = make([]float64, n), make([]float64, n)
	inverse := lowerTriangle(n, n) // of L; the squares of its columns sum to the diagonal of K⁻¹
	for i := range n {
		copy(inverse.Data[i*n:], m.lower.Data[i*m.lower.Stride:][:i+1])
	}
	lapack64.Trtri(inverse)
	for i := range n {
		for j, v := range inverse.Data[i*n : i*n+i+1] {
			variance[j] += v * v
		}
	}
	for i, y := range m.data.Outcomes {
		variance[i] = 1 / variance[i]
		mean[i] = y - m.alpha[i]*variance[i]
	}
	return mean, variance
}

// Fitted are the posterior means at the rows with outcomes.
func (m *Model) Fitted() []float64 {
	out := make([]float64, len(m.alpha))
	for i, a := range m.alpha {
		out[i] = m.data.Outcomes[i] - (m.theta.Noise()*m.data.weight(i)+m.jitter*m.signal)*a
	}
	return out
}
