package cma

// Numbers is how many dimensions the normal distribution has.
func (m *Model) Numbers() int { return len(m.numbers) }

// Whiten gives the numbers of each row in the coordinates of the distribution,
// in which its samples are independent standard normals. NaN becomes 0, the
// mean. Choices are left out.
func (m *Model) Whiten(rows [][]float64) [][]float64 {
	d := len(m.numbers)
	out := make([][]float64, len(rows))
	y, scratch := make([]float64, d), make([]float64, d)
	for r, row := range rows {
		for k, i := range m.numbers {
			y[k] = 0
			if v := row[i]; v == v {
				y[k] = (v - m.gauss.mean[k]) / (m.gauss.sigma * m.gauss.margin[k])
			}
		}
		out[r] = make([]float64, d)
		if d > 0 {
			m.gauss.whiten(y, scratch, out[r])
		}
	}
	return out
}
