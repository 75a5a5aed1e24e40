package parzen

import "math"

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

// accumulate adds each kernel at each of the n rows, all of whose dimensions
// are active. Terms that are too small to count are not finished.
func (m *Mixture) accumulate(n int) {
	s, d := &m.scratch, len(m.real)
	discrete := len(m.levels) + len(m.choices)
	for slot, height := range m.heights {
		kernel := m.kernels[2*slot*d : 2*(slot+1)*d]
		for c := range n {
			limit := height - s.top[c] + negligible
			x := s.real[c*d : (c+1)*d]
			q := 0.0
			for j, v := range x {
				t := (v - kernel[2*j]) * kernel[2*j+1]
				q += t * t
				if q > limit {
					break
				}
			}
			if q > limit {
				continue
			}
			term := height - q
			if discrete > 0 {
				term += m.discrete(slot, s.index[c*discrete:(c+1)*discrete])
			}
			s.add(c, term, m.weights[slot])
		}
	}
}

// accumulateSome is accumulate for rows with dimensions that are not active.
func (m *Mixture) accumulateSome(n int) {
	s, d := &m.scratch, len(m.real)
	discrete := len(m.levels) + len(m.choices)
	for slot := range m.heights {
		for c := range n {
			term := 0.0
			for j, v := range s.real[c*d : (c+1)*d] {
				if math.IsNaN(v) {
					continue
				}
				k := slot*d + j
				t := (v - m.kernels[2*k]) * m.kernels[2*k+1]
				term -= t*t + m.norms[k]
			}
			term += m.discrete(slot, s.index[c*discrete:(c+1)*discrete])
			s.add(c, term, m.weights[slot])
		}
	}
}

// add adds weight*exp(term) to the c-th sum.
func (s *scratch) add(c int, term, weight float64) {
	if weight == 0 {
		return
	}
	if term > s.top[c] {
		s.sum[c] = s.sum[c]*math.Exp(s.top[c]-term) + weight
		s.top[c] = term
		return
	}
	s.sum[c] += weight * math.Exp(term-s.top[c])
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
