package parzen

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// negligible is how far below the largest term the logarithm of another may lie
// before it is left out of the sum: a relative error of 2e-9.
const negligible = 20

// block is how many kernels are looked at together, for all rows: few enough for
// the cache.
const block = 512

// LogDensities writes the logarithm of the density at each row of x into out.
// NaN in a row means that the dimension is not active there: the density is
// then that of the other dimensions.
func (m *Mixture) LogDensities(x [][]float64, out []float64) {
	sums, indices := make([]float64, len(x)), make([][]int, len(x))
	for c, row := range x {
		indices[c], sums[c], out[c] = m.indices(row), m.prior, m.logPrior(row)
		if m.prior == 0 {
			out[c] = math.Inf(-1)
		}
	}
	var terms [block]float64
	for first := 0; first < len(m.ids); first += block {
		end := min(first+block, len(m.ids))
		for c, row := range x {
			part := terms[:end-first]
			m.terms(row, first, part)
			out[c], sums[c] = m.accumulate(out[c], sums[c], first, part, indices[c])
		}
	}
	for c, sum := range sums {
		out[c] += math.Log(sum)
	}
}

// accumulate adds the kernels from first on, whose log densities in the real
// dimensions are terms, to exp(top)*sum.
func (m *Mixture) accumulate(top, sum float64, first int, terms []float64, index []int) (float64, float64) {
	for i, term := range terms {
		if term <= top-negligible { // the masses of levels and choices make it smaller still
			continue
		}
		weight := m.weights[first+i]
		if weight == 0 {
			continue
		}
		term += m.discrete(first+i, index)
		if term > top {
			sum *= math.Exp(top - term)
			top = term
		}
		if term > top-negligible {
			sum += weight * math.Exp(term-top)
		}
	}
	return top, sum
}

// terms writes the log densities of the kernels from first on in the real
// dimensions.
func (m *Mixture) terms(row []float64, first int, out []float64) {
	copy(out, m.heights[first:])
	for j := range m.real {
		k := &m.real[j]
		v := row[k.at]
		if math.IsNaN(v) {
			floats.Add(out, k.norms[first:first+len(out)])
			continue
		}
		means, inverses := k.means[first:][:len(out)], k.inverses[first:][:len(out)]
		for i := range out {
			t := (v - means[i]) * inverses[i]
			out[i] -= t * t
		}
	}
}

// indices are the levels and the choices of a row, -1 where not active.
func (m *Mixture) indices(row []float64) []int {
	index := make([]int, 0, len(m.levels)+len(m.choices))
	for j := range m.levels {
		index = append(index, m.levels[j].level(row))
	}
	for j := range m.choices {
		index = append(index, m.choices[j].index(row))
	}
	return index
}

// level of a row, -1 when the dimension is not active.
func (o *ordered) level(row []float64) int {
	if v := row[o.at]; !math.IsNaN(v) {
		return o.dim.Nearest(v)
	}
	return -1
}

// index of a row, -1 when the dimension is not active.
func (c *choice) index(row []float64) int {
	if v := row[c.at]; !math.IsNaN(v) {
		return int(v)
	}
	return -1
}

// logPrior is the log density of the prior.
func (m *Mixture) logPrior(row []float64) float64 {
	const inverse = 1 / math.Sqrt2
	sum := 0.0
	for j := range m.real {
		if v := row[m.real[j].at]; !math.IsNaN(v) {
			t := (v - 0.5) * inverse
			sum -= t*t + priorNorm
		}
	}
	for j := range m.levels {
		if l := m.levels[j].level(row); l >= 0 {
			sum += m.levels[j].prior.mass(l)
		}
	}
	for j := range m.choices {
		if i := m.choices[j].index(row); i >= 0 {
			sum += m.priorOf(&m.choices[j], i)
		}
	}
	return sum
}

// priorOf is the log mass that the prior gives to the i-th choice.
func (m *Mixture) priorOf(c *choice, i int) float64 {
	if !m.config.Empirical {
		return c.prior
	}
	return math.Log(float64(c.counts[i]+1) / float64(c.active+c.count))
}

// priorNorm is the log of what the prior of a real dimension is divided by.
var priorNorm = math.Log(within(0.5, 1/math.Sqrt2)) + logSqrt2Pi

// discrete is the log mass of the levels and choices under a kernel.
func (m *Mixture) discrete(slot int, index []int) float64 {
	sum := 0.0
	for j := range m.levels {
		i := index[j]
		if i < 0 {
			continue
		}
		if t := m.cells[slot*len(m.levels)+j]; t != nil {
			sum += t.mass(i)
		} else {
			o := &m.levels[j]
			sum += math.Log(o.edges[i+1] - o.edges[i])
		}
	}
	for j := range m.choices {
		c := &m.choices[j]
		i := index[len(m.levels)+j]
		if i < 0 {
			continue
		}
		switch v := m.rows[slot][c.at]; {
		case v == float64(i):
			sum += c.same
		case math.IsNaN(v):
			sum += c.prior
		default:
			sum += c.other
		}
	}
	return sum
}
