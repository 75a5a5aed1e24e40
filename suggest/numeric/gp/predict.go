package gp

import (
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/dense"
)

// block is how many rows are predicted at once.
const block = 32

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

func (p *Prediction) resize(rows, dims int, gradient bool) {
	p.Mean = slices.Grow(p.Mean[:0], rows)[:rows]
	p.Variance = slices.Grow(p.Variance[:0], rows)[:rows]
	size := 0
	if gradient {
		size = rows * dims
	}
	p.MeanGradient = slices.Grow(p.MeanGradient[:0], size)[:size]
	p.VarianceGradient = slices.Grow(p.VarianceGradient[:0], size)[:size]
}

// workspace is kept between predictions. It makes a Model unfit for use from
// several goroutines at once.
type workspace struct {
	step                          int
	kernel, slopes, white, solved []float64 // block rows, step apart
	queries, basis, byRow         []float64
}

func (w *workspace) resize(n, columns, basis int) {
	w.step = dense.Padded(n)
	size := block * w.step
	for _, s := range []*[]float64{&w.kernel, &w.slopes, &w.white, &w.solved} {
		*s = slices.Grow((*s)[:0], size)[:size]
	}
	w.queries = slices.Grow(w.queries[:0], block*columns)[:block*columns]
	w.basis = slices.Grow(w.basis[:0], block*basis)[:block*basis]
	w.byRow = slices.Grow(w.byRow[:0], 3*n)[:3*n]
}

// Predict the rows, into p. It uses memory of the model: one call at a time.
func (m *Model) Predict(rows [][]float64, gradient bool, p *Prediction) {
	p.resize(len(rows), len(m.layout.dims), gradient)
	m.space.resize(m.Len(), len(m.layout.columns), m.layout.degrees*m.layout.numeric)
	for first := 0; first < len(rows); first += block {
		m.predictBlock(rows, first, min(len(rows), first+block), gradient, p)
	}
}

func (m *Model) predictBlock(rows [][]float64, first, end int, gradient bool, p *Prediction) {
	w, n := &m.space, m.Len()
	for i := first; i < end; i++ {
		m.covariances(rows[i], i-first, gradient)
	}
	m.factor.Whiten(end-first, w.kernel, w.white, w.step)
	if gradient {
		m.factor.Unwhiten(end-first, w.white, w.solved, w.step)
	}
	for i := first; i < end; i++ {
		at := (i - first) * w.step
		kernel, white := w.kernel[at:at+n], w.white[at:at+n]
		mean, explained := 0.0, 0.0
		for j, a := range m.alpha {
			mean += float64(a * kernel[j])
		}
		for _, v := range white {
			explained += float64(v * v)
		}
		prior := m.signal
		if m.trend > 0 {
			size := m.layout.degrees * m.layout.numeric
			_, own := m.own(w.basis[(i-first)*size : (i-first+1)*size])
			prior += m.trend * own
		}
		p.Mean[i] = mean
		p.Variance[i] = max(prior-explained, minVariance*m.signal)
		if gradient {
			m.gradients(rows[i], i, i-first, p)
		}
	}
}

// covariances of a query with the rows, in row b of the block.
func (m *Model) covariances(row []float64, b int, gradient bool) {
	w, n := &m.space, m.Len()
	query := w.queries[b*len(m.columns) : (b+1)*len(m.columns)]
	m.layout.expand(row, query)
	size := m.layout.degrees * m.layout.numeric
	basis := w.basis[b*size : (b+1)*size]
	if m.trend > 0 {
		m.layout.polynomialsOf(query, basis)
	}
	m.layout.scaled(query, m.inverse)
	out := w.kernel[b*w.step : b*w.step+n]
	m.layout.distances(query, m.columns, m.inverse, out)
	if gradient {
		m.layout.profile(out, w.slopes[b*w.step:b*w.step+n])
	} else {
		m.layout.profile(out, nil)
	}
	for j := range out {
		out[j] *= m.signal
	}
	if m.trend > 0 {
		m.addTrend(m.trend, basis, out, w.byRow)
	}
}

// gradients of query b of the block, which is row i of the prediction.
func (m *Model) gradients(row []float64, i, b int, p *Prediction) {
	w, n, dims := &m.space, m.Len(), len(m.layout.dims)
	slopes := w.slopes[b*w.step : b*w.step+n]
	solved := w.solved[b*w.step : b*w.step+n]
	byMean, bySolved := w.byRow[:n], w.byRow[n:2*n]
	sumMean, sumSolved := 0.0, 0.0
	for j, g := range slopes {
		a := 0.0
		if j < len(m.alpha) {
			a = m.alpha[j]
		}
		g *= m.signal
		byMean[j], bySolved[j] = g*a, g*solved[j]
		sumMean += byMean[j]
		sumSolved += bySolved[j]
	}
	query := w.queries[b*len(m.columns) : (b+1)*len(m.columns)]
	dMean := p.MeanGradient[i*dims : (i+1)*dims]
	dVariance := p.VarianceGradient[i*dims : (i+1)*dims]
	clear(dMean)
	clear(dVariance)
	for f, c := range m.layout.columns {
		if c.choice || c.indicator || row[c.dim] != row[c.dim] {
			continue
		}
		s, t := 0.0, 0.0
		for j, z := range m.columns[f][:n] {
			s += float64(byMean[j] * z)
			t += float64(bySolved[j] * z)
		}
		x, inverse := query[f], m.inverse[c.dim]
		dMean[c.dim] = -(x*sumMean - s) * inverse
		dVariance[c.dim] = 2 * (x*sumSolved - t) * inverse
	}
	if m.trend > 0 {
		m.trendGradients(row, b, dMean, dVariance)
	}
}
