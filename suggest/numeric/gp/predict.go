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
	queries, basis, products      []float64
	ones, pairs, sums             []float64
}

func (w *workspace) resize(n, columns, basis int) {
	w.step = dense.Padded(n)
	size := block * w.step
	for _, s := range []*[]float64{&w.kernel, &w.slopes, &w.white, &w.solved} {
		*s = slices.Grow((*s)[:0], size)[:size]
	}
	w.queries = slices.Grow(w.queries[:0], block*columns)[:block*columns]
	w.basis = slices.Grow(w.basis[:0], block*basis)[:block*basis]
	w.products = slices.Grow(w.products[:0], n)[:n]
	w.pairs = slices.Grow(w.pairs[:0], 2*n)[:2*n]
	w.sums = w.sums[:0]
	for len(w.ones) < n {
		w.ones = append(w.ones, 1)
	}
}

// pairSums are the sums of the products of the pairs with each of the columns,
// two for each, and then with ones, up to a multiple of four columns.
func (w *workspace) pairSums(n int, columns ...[]float64) []float64 {
	first := len(w.sums)
	for k := 0; k < len(columns); k += 4 {
		group := [4][]float64{w.ones, w.ones, w.ones, w.ones}
		copy(group[:], columns[k:])
		sums := dense.PairSums(w.pairs[:2*n], &group)
		w.sums = append(w.sums, sums[:]...)
	}
	return w.sums[first:]
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
	w := &m.space
	for i := first; i < end; i++ {
		m.covariances(rows[i], i-first, gradient)
	}
	m.factor.Whiten(end-first, w.kernel, w.white, w.step)
	if gradient {
		m.factor.Unwhiten(end-first, w.white, w.solved, w.step)
	}
	for i := first; i < end; i += 4 {
		m.moments(i-first, min(4, end-i), p.Mean[i:end], p.Variance[i:end])
	}
	for i := first; i < end && gradient; i++ {
		m.gradients(rows[i], i, i-first, p)
	}
}

// moments writes means and variances of at most four queries, from query b of
// the block on. Each sum is made in ascending order, four at once.
func (m *Model) moments(b, count int, means, variances []float64) {
	w, n := &m.space, m.Len()
	var kernel, white [4][]float64
	for k := range kernel {
		at := (b + min(k, count-1)) * w.step
		kernel[k], white[k] = w.kernel[at:at+n], w.white[at:at+n]
	}
	var mean, explained [4]float64
	k0, k1, k2, k3 := kernel[0][:len(m.alpha)], kernel[1][:len(m.alpha)], kernel[2][:len(m.alpha)], kernel[3][:len(m.alpha)]
	for j, a := range m.alpha {
		mean[0] += float64(a * k0[j])
		mean[1] += float64(a * k1[j])
		mean[2] += float64(a * k2[j])
		mean[3] += float64(a * k3[j])
	}
	w1, w2, w3 := white[1][:n], white[2][:n], white[3][:n]
	for j, v := range white[0] {
		explained[0] += float64(v * v)
		explained[1] += float64(w1[j] * w1[j])
		explained[2] += float64(w2[j] * w2[j])
		explained[3] += float64(w3[j] * w3[j])
	}
	for k := range count {
		prior := m.signal
		if m.trend > 0 {
			size := m.layout.degrees * m.layout.numeric
			_, own := m.own(w.basis[(b+k)*size : (b+k+1)*size])
			prior += m.trend * own
		}
		means[k] = mean[k]
		variances[k] = max(prior-explained[k], minVariance*m.signal)
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
	dense.Scale(m.signal, out)
	if m.trend > 0 {
		m.addTrend(m.trend, basis, out, w.products)
	}
}

// gradients of query b of the block, which is row i of the prediction.
func (m *Model) gradients(row []float64, i, b int, p *Prediction) {
	w, n, dims := &m.space, m.Len(), len(m.layout.dims)
	slopes := w.slopes[b*w.step : b*w.step+n]
	solved := w.solved[b*w.step : b*w.step+n]
	for j, g := range slopes {
		a := 0.0
		if j < len(m.alpha) {
			a = m.alpha[j]
		}
		g *= m.signal
		w.pairs[2*j], w.pairs[2*j+1] = g*a, g*solved[j]
	}
	w.sums = w.sums[:0]
	by := w.pairSums(n, m.columns...)
	all := by[2*len(m.columns):] // of the ones that fill the last four
	if len(all) == 0 {
		all = w.pairSums(n, w.ones)
	}
	sumMean, sumSolved := all[0], all[1]
	query := w.queries[b*len(m.columns) : (b+1)*len(m.columns)]
	dMean := p.MeanGradient[i*dims : (i+1)*dims]
	dVariance := p.VarianceGradient[i*dims : (i+1)*dims]
	clear(dMean)
	clear(dVariance)
	for f, c := range m.layout.columns {
		if c.choice || c.indicator || row[c.dim] != row[c.dim] {
			continue
		}
		s, t := by[2*f], by[2*f+1]
		x, inverse := query[f], m.inverse[c.dim]
		dMean[c.dim] = -(x*sumMean - s) * inverse
		dVariance[c.dim] = 2 * (x*sumSolved - t) * inverse
	}
	if m.trend > 0 {
		m.trendGradients(row, b, dMean, dVariance)
	}
}
