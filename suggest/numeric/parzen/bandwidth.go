package parzen

import (
	"math"
	"slices"
	"sort"
)

// place is the kernel of an observation on an axis.
type place struct{ axis, id int }

// enter puts an observation on an axis and notes whose bandwidth changes: its
// own and its neighbours'.
func (m *Mixture) enter(a int, e entry, touched []place) []place {
	if math.IsNaN(e.value) {
		return touched
	}
	x := &m.axes[a]
	at := x.find(e)
	x.entries = slices.Insert(x.entries, at, e)
	for i := max(0, at-1); i <= min(at+1, len(x.entries)-1); i++ {
		touched = append(touched, place{axis: a, id: x.entries[i].id})
	}
	return touched
}

// leave takes an observation from an axis and notes the neighbours.
func (m *Mixture) leave(a int, e entry, touched []place) []place {
	if math.IsNaN(e.value) {
		return touched
	}
	x := &m.axes[a]
	at := x.find(e)
	x.entries = slices.Delete(x.entries, at, at+1)
	for i := max(0, at-1); i <= min(at, len(x.entries)-1); i++ {
		touched = append(touched, place{axis: a, id: x.entries[i].id})
	}
	return touched
}

// find is where an entry is or belongs.
func (x *axis) find(e entry) int {
	return sort.Search(len(x.entries), func(i int) bool { return compare(x.entries[i], e) >= 0 })
}

// settle makes the kernels anew whose bandwidth changed: those touched, or all
// when the number of observations changed the clip.
func (m *Mixture) settle(touched []place) {
	m.weighChoices()
	if minimum := m.clip(); minimum != m.minimum {
		m.minimum = minimum
		m.rebuild()
		return
	}
	for _, p := range touched {
		slot, _ := slices.BinarySearch(m.ids, p.id)
		x := &m.axes[p.axis]
		value := m.rows[slot][x.at]
		m.shape(p.axis, x.find(entry{value: value, id: p.id}), slot)
	}
	for _, p := range touched {
		slot, _ := slices.BinarySearch(m.ids, p.id)
		m.raise(slot)
	}
}

// rebuild makes all kernels anew.
func (m *Mixture) rebuild() {
	m.weighChoices()
	for a := range m.axes {
		for i, e := range m.axes[a].entries {
			slot, _ := slices.BinarySearch(m.ids, e.id)
			m.shape(a, i, slot)
		}
	}
	for slot := range m.ids {
		m.raise(slot)
	}
}

// raise sums the norms of a kernel.
func (m *Mixture) raise(slot int) {
	m.heights[slot] = 0
	for j := range m.real {
		m.heights[slot] -= m.real[j].norms[slot]
	}
}

// shape makes the kernel of the i-th observation along an axis.
func (m *Mixture) shape(a, i, slot int) {
	x := &m.axes[a]
	value, bandwidth := x.entries[i].value, m.bandwidth(x, i)
	if a < len(m.real) {
		k, inverse := &m.real[a], 1/(bandwidth*math.Sqrt2)
		if k.means[slot] != value || k.inverses[slot] != inverse {
			k.means[slot], k.inverses[slot] = value, inverse
			k.norms[slot] = math.Log(bandwidth*within(value, inverse)) + logSqrt2Pi
		}
		return
	}
	j := a - len(m.real)
	m.cells[slot*len(m.levels)+j] = m.levels[j].cell(value, bandwidth)
}

const logSqrt2Pi = 0.91893853320467274178032973640562

// within is how much of a normal around mean lies in the unit interval;
// inverse is 1/(bandwidth*sqrt(2)).
func within(mean, inverse float64) float64 {
	return (math.Erf(mean*inverse) + math.Erf((1-mean)*inverse)) / 2
}

// bandwidth of the i-th observation along an axis: the larger of the distances
// to its neighbours, between the clip and the range (Bergstra et al., NIPS
// 2011, section 4.2).
func (m *Mixture) bandwidth(x *axis, i int) float64 {
	last := len(x.entries) - 1
	value := x.entries[i].value
	left, right := value, 1-value
	if i > 0 {
		left = value - x.entries[i-1].value
	}
	if i < last {
		right = x.entries[i+1].value - value
	}
	if !m.config.Endpoints && last > 0 {
		switch i {
		case 0:
			left = 0
		case last:
			right = 0
		}
	}
	return min(max(left, right, m.minimum), 1)
}

// weighChoices sets the masses of the categorical kernels: the observation's
// choice has weight 1 and each choice a share of the prior that shrinks with
// the number of observations.
func (m *Mixture) weighChoices() {
	share := math.Max(m.config.PriorWeight, 1e-3) / float64(len(m.ids)+1)
	for j := range m.choices {
		c := &m.choices[j]
		whole := 1 + share*float64(c.count)
		c.same, c.other = math.Log((1+share)/whole), math.Log(share/whole)
		c.prior = -math.Log(float64(c.count))
	}
}

// cell has the log masses that a kernel gives to the levels of an Ordered
// dimension. Kernels of equal mean and bandwidth share it; masses are computed
// when they are asked for.
type cell struct {
	mean, inverse float64 // inverse is 1/(bandwidth*sqrt(2))
	whole         float64 // log of the mass in the unit interval
	edges         []float64
	masses        []float64 // NaN where not computed yet; nil when there are too many levels
}

// cellKey names a cell among those of a dimension.
type cellKey struct{ mean, bandwidth float64 }

const (
	// remembered is how many levels a dimension may have for their masses to be
	// kept.
	remembered = 256
	// maxCells bounds how many cells a dimension keeps for sharing.
	maxCells = 4096
)

// cell finds the shared cell or makes it.
func (o *ordered) cell(mean, bandwidth float64) *cell {
	key := cellKey{mean: o.dim.Levels[o.dim.Nearest(mean)], bandwidth: bandwidth}
	if c, ok := o.shared[key]; ok {
		return c
	}
	if o.shared == nil || len(o.shared) >= maxCells {
		o.shared = map[cellKey]*cell{}
	}
	c := newCell(key, o.edges)
	o.shared[key] = c
	return c
}

func newCell(key cellKey, edges []float64) *cell {
	c := &cell{mean: key.mean, inverse: 1 / (key.bandwidth * math.Sqrt2), edges: edges}
	c.whole = math.Log(2 * within(c.mean, c.inverse))
	if levels := len(edges) - 1; levels <= remembered {
		c.masses = make([]float64, levels)
		for i := range c.masses {
			c.masses[i] = math.NaN()
		}
	}
	return c
}

// mass is the log mass of the i-th level: the normal integrated from edge to
// edge.
func (c *cell) mass(i int) float64 {
	if c.masses != nil && !math.IsNaN(c.masses[i]) {
		return c.masses[i]
	}
	a, b := (c.edges[i]-c.mean)*c.inverse, (c.edges[i+1]-c.mean)*c.inverse
	if a > 0 {
		a, b = -b, -a
	}
	twice := 0.0
	if b < 0 {
		twice = math.Erfc(-b) - math.Erfc(-a)
	} else {
		twice = math.Erf(b) - math.Erf(a)
	}
	mass := math.Log(twice) - c.whole
	if c.masses != nil {
		c.masses[i] = mass
	}
	return mass
}
