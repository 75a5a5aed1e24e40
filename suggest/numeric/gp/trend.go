package gp

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/dense"
)

// The trend is a part of the kernel that makes the model a regression on
// polynomials where the data ask for it. With the mean products
//
//	t = Σ P1(x)P1(y)/d and r = Σ w_p P_p(x)P_p(y)/d, p = 2, 3, 4
//
// over the d numeric dimensions and the orthonormal Legendre polynomials on
// [0, 1], it is a² t(t+2), which spans the linear and quadratic functions, or
// a² (t(t+2) + 2r), which also has the main effects of each number up to the
// fourth degree.
const maxDegrees = 4

// Quartic is the layout with main effects up to the fourth degree.
func (l *Layout) Quartic() *Layout {
	q := *l
	q.degrees = maxDegrees
	return &q
}

// linear is the first polynomial.
func linear(x float64) float64 { return math.Sqrt(3) * (2*x - 1) }

// polynomials gives the values at x, times the square roots of their weights,
// which are 1, 1, 1/2 and 1/4.
func polynomials(x float64) [maxDegrees]float64 {
	z := 2*x - 1
	z2 := z * z
	return [maxDegrees]float64{
		linear(x),
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

// polynomialsOf writes the values for all numeric features, by degree first.
func (l *Layout) polynomialsOf(features, out []float64) {
	p := 0
	for f, c := range l.columns {
		if !c.choice && !c.indicator {
			if l.degrees == 1 {
				out[p] = linear(features[f])
			} else {
				for k, v := range polynomials(features[f]) {
					out[k*l.numeric+p] = v
				}
			}
			p++
		}
	}
}

// addTrend adds weight times the trend between a query, given by its
// polynomials, and the first len(out) rows. scratch has room for them.
func (m *Model) addTrend(weight float64, query, out, scratch []float64) {
	n, d := len(out), m.layout.numeric
	products := scratch[:n]
	m.products(query, 0, d, products)
	dense.AddQuadratic(weight, products, out)
	if m.layout.degrees == 1 {
		return
	}
	m.products(query, d, m.layout.degrees*d, products)
	for j, r := range products {
		out[j] += 2 * weight * r
	}
}

// products are the mean products of the polynomials from first to end.
func (m *Model) products(query []float64, first, end int, out []float64) {
	clear(out)
	n := len(out)
	f := first
	for ; f+2 <= end; f += 2 {
		x, y := query[f]/float64(m.layout.numeric), query[f+1]/float64(m.layout.numeric)
		dense.AddProducts2(x, y, m.basis[f], m.basis[f+1], out)
	}
	for ; f < end; f++ {
		x := query[f] / float64(m.layout.numeric)
		for i, y := range m.basis[f][:n] {
			out[i] += float64(x * y)
		}
	}
}

// own is the trend between a query and itself, without its weight.
func (m *Model) own(query []float64) (t, whole float64) {
	d := m.layout.numeric
	r := 0.0
	for f, x := range query {
		if f < d {
			t += float64(x * x)
		} else {
			r += float64(x * x)
		}
	}
	t /= float64(d)
	r /= float64(d)
	return t, t*(t+2) + 2*r
}

// trendGradients adds the gradients of the trend for query b of the block.
func (m *Model) trendGradients(row []float64, b int, dMean, dVariance []float64) {
	w, n, d := &m.space, m.Len(), m.layout.numeric
	solved := w.solved[b*w.step : b*w.step+n]
	query := w.basis[b*len(m.basis) : (b+1)*len(m.basis)]
	products := w.products[:n]
	m.products(query, 0, d, products)
	for j, t := range products {
		a := 0.0
		if j < len(m.alpha) {
			a = m.alpha[j]
		}
		w.pairs[2*j], w.pairs[2*j+1] = (1+t)*a, (1+t)*solved[j]
	}
	ownLinear, _ := m.own(query)
	linear := w.pairSums(n, m.basis[:d]...)
	var higher []float64
	if m.layout.degrees > 1 {
		for j, v := range solved {
			a := 0.0
			if j < len(m.alpha) {
				a = m.alpha[j]
			}
			w.pairs[2*j], w.pairs[2*j+1] = a, v
		}
		higher = w.pairSums(n, m.basis[d:]...)
	}
	scale := 2 * m.trend / float64(d)
	f := 0
	for _, c := range m.layout.columns {
		if c.choice || c.indicator {
			continue
		}
		if x := row[c.dim]; x == x {
			all := slopes(x)
			for p, slope := range all[:m.layout.degrees] {
				own, sums := query[p*d+f], linear[2*f:]
				if p == 0 {
					own *= 1 + ownLinear
				} else {
					sums = higher[2*((p-1)*d+f):]
				}
				dMean[c.dim] += scale * slope * sums[0]
				dVariance[c.dim] += 2 * scale * slope * (own - sums[1])
			}
		}
		f++
	}
}
