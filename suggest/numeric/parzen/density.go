package parzen

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/dense"
)

// negligible is how far below the largest term the logarithm of another may lie
// before it is left out of the sum: a relative error of 2e-9.
const negligible = 20

// scratch is memory that is used again.
type scratch struct {
	touched []place
	real    []float64 // coordinates of the rows, real dimensions only
	index   []int     // levels and choices of the rows
	top     []float64 // largest term so far
	sum     []float64 // sum of the terms divided by exp(top)

	// Of a block of kernels at one row:
	terms   [block]float64 // logarithms
	picked  []float64      // those that count
	slots   []int          // of those
	weights [block]float64 // of those
}

// LogDensities writes the logarithm of the density at each row of x into out.
// NaN in a row means that the dimension is not active there: the density is
// then that of the other dimensions.
func (m *Mixture) LogDensities(x [][]float64, out []float64) {
	full := m.load(x)
	for c, row := range x {
		m.scratch.top[c], m.scratch.sum[c] = m.logPrior(row), m.prior
		if m.prior == 0 {
			m.scratch.top[c] = math.Inf(-1)
		}
	}
	if full {
		m.accumulate(len(x))
	} else {
		m.accumulateSome(len(x))
	}
	for c := range x {
		out[c] = m.scratch.top[c] + math.Log(m.scratch.sum[c])
	}
}

// LogDensity at one row.
func (m *Mixture) LogDensity(x []float64) float64 {
	var out [1]float64
	m.LogDensities([][]float64{x}, out[:])
	return out[0]
}

// load copies the rows; full is false when something is not active.
func (m *Mixture) load(x [][]float64) (full bool) {
	s := &m.scratch
	s.real, s.index = s.real[:0], s.index[:0]
	full = true
	for _, row := range x {
		for _, i := range m.real {
			full = full && !math.IsNaN(row[i])
			s.real = append(s.real, row[i])
		}
		for j := range m.levels {
			full = full && !math.IsNaN(row[m.levels[j].at])
			s.index = append(s.index, m.levels[j].level(row))
		}
		for j := range m.choices {
			full = full && !math.IsNaN(row[m.choices[j].at])
			s.index = append(s.index, m.choices[j].index(row))
		}
	}
	for len(s.top) < len(x) {
		s.top, s.sum = append(s.top, 0), append(s.sum, 0)
	}
	return full
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
	for _, i := range m.real {
		if v := row[i]; !math.IsNaN(v) {
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

// block is how many kernels are computed at once: few enough for the cache.
const block = 32 * dense.Lanes

// accumulate adds each kernel at each of the n rows, all of whose dimensions
// are active. Terms that are too small to count are left out.
func (m *Mixture) accumulate(n int) {
	s, d := &m.scratch, len(m.real)
	discrete := len(m.levels) + len(m.choices)
	for from := 0; from < len(m.ids); from += block {
		count := min(block, len(m.ids)-from)
		terms := s.terms[:(count+dense.Lanes-1)/dense.Lanes*dense.Lanes]
		for c := range n {
			if most := m.kernels.Terms(from, s.real[c*d:(c+1)*d], terms); most <= s.top[c]-negligible {
				continue
			}
			s.pick(from, count, s.top[c]-negligible)
			if discrete > 0 {
				index := s.index[c*discrete : (c+1)*discrete]
				for i, slot := range s.slots {
					s.picked[i] += m.discrete(slot, index)
				}
			}
			m.add(c)
		}
	}
}

// pick notes the terms of a block that are above a limit, and their slots.
func (s *scratch) pick(from, count int, limit float64) {
	picked, slots, k := s.picked[:block], s.slots[:block], 0
	for i, term := range s.terms[:count] {
		picked[k], slots[k] = term, from+i
		if term > limit {
			k++
		}
	}
	s.picked, s.slots = picked[:k], slots[:k]
}

// accumulateSome is accumulate for rows with dimensions that are not active.
func (m *Mixture) accumulateSome(n int) {
	s, d := &m.scratch, len(m.real)
	discrete := len(m.levels) + len(m.choices)
	for from := 0; from < len(m.ids); from += block {
		count := min(block, len(m.ids)-from)
		for c := range n {
			s.picked, s.slots = s.picked[:count], s.slots[:count]
			for i := range count {
				s.picked[i], s.slots[i] = 0, from+i
			}
			for j, v := range s.real[c*d : (c+1)*d] {
				if math.IsNaN(v) {
					continue
				}
				means, inverses := m.kernels.Means(j)[from:], m.kernels.Inverses(j)[from:]
				for i := range count {
					t := float64((v - means[i]) * inverses[i])
					s.picked[i] -= float64(t*t) + m.norms[(from+i)*d+j]
				}
			}
			index := s.index[c*discrete : (c+1)*discrete]
			for i, slot := range s.slots {
				s.picked[i] += m.discrete(slot, index)
			}
			m.add(c)
		}
	}
}

// add adds weight*exp(term) of the picked terms to the c-th sum.
func (m *Mixture) add(c int) {
	s := &m.scratch
	top, k := s.top[c], 0
	for i, term := range s.picked {
		weight := m.weights[s.slots[i]]
		if weight == 0 || term <= top-negligible {
			continue
		}
		if term > top {
			top = term
		}
		s.picked[k], s.weights[k] = term, weight
		k++
	}
	if top > s.top[c] {
		s.sum[c] *= math.Exp(s.top[c] - top)
		s.top[c] = top
	}
	s.sum[c] += sumExp(s.picked[:k], s.weights[:k], top)
}

// sumExp is the sum of weight*exp(term-top) over the terms that count. It is
// here, and not a call of math.Exp for each term, because half of the time of
// a density goes into it: the exponent is split into a power of 2 and a rest of
// at most log(2)/2, whose Taylor series has a relative error below 1e-11. The
// conversions keep the compiler from fusing a product with its sum.
func sumExp(terms, weights []float64, top float64) (sum float64) {
	const (
		round = 3 << 51 // what is added to it and taken away again loses its fraction
		high  = 6.93147180369123816490e-01
		low   = 1.90821492927058770002e-10
	)
	weights = weights[:len(terms)]
	for i, term := range terms {
		x := term - top
		if x < -negligible {
			continue
		}
		shifted := float64(x*math.Log2E) + round
		n := shifted - round
		r := x - float64(n*high) - float64(n*low)
		p := float64(r*(1./3628800)) + 1./362880
		p = float64(p*r) + 1./40320
		p = float64(p*r) + 1./5040
		p = float64(p*r) + 1./720
		p = float64(p*r) + 1./120
		p = float64(p*r) + 1./24
		p = float64(p*r) + 1./6
		p = float64(p*r) + 0.5
		p = float64(p*r) + 1
		p = float64(p*r) + 1
		power := math.Float64frombits((math.Float64bits(shifted) + 1023) << 52)
		sum += float64(weights[i] * float64(p*power))
	}
	return sum
}

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
