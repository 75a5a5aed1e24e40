// Package parzen has the Parzen estimators of TPE: densities over the unit box
// that are mixtures of products. There is one kernel for each observation, and
// a prior; the density of a kernel is the product of one factor for each
// dimension (Watanabe, "Tree-structured Parzen estimator", arXiv 2304.11127,
// section 3). Kernels and prior integrate to one over the box each.
package parzen

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// Config says how wide kernels are and how much the prior counts.
type Config struct {
	// PriorWeight is the weight of the prior where that of a new observation is
	// 1, at least 0. The prior takes part in the categorical kernels, too.
	PriorWeight float64
	// Endpoints says whether the ends of a dimension count as neighbours when
	// the bandwidth of the first and the last observation is measured.
	Endpoints bool
	// Clip bounds bandwidths from below, in units of the dimension's range:
	// they are at least 1/min(Clip, 2+number of observations). This is the magic
	// clip of Bergstra et al. (2013), who have 100. At most 0: no such bound.
	Clip float64
	// Narrowest is a lower bound on bandwidths, in the same unit; at least
	// 1/1000 is always used, so that observations in one place do not make a
	// kernel of infinite height.
	Narrowest float64
	// Empirical says whether the prior gives each choice of a Choice dimension
	// its frequency among the observations (and one more) in place of an equal
	// share. That suits the density of bad trials: far from all of them it then
	// still tells how often each choice was bad.
	Empirical bool
}

// narrowest is the smallest bandwidth there is.
const narrowest = 1e-3

// Mixture is a density over rows. It changes by Insert and Remove; what it is
// depends on the set of observations and never on the order of the calls. It is
// not safe for use from several goroutines at once.
type Mixture struct {
	config  Config
	real    []normals // the Continuous dimensions
	levels  []ordered // the Ordered ones
	choices []choice  // the Choice ones
	axes    []axis    // real, then levels: the observations in order along each

	// For each observation, in the order of the identifiers.
	ids     []int
	rows    [][]float64
	heights []float64 // log of the kernels' product at their means, real dimensions only
	cells   []*cell   // per Ordered dimension; nil where it is not active
	weights []float64 // sum to 1 with prior

	prior   float64
	minimum float64 // bandwidth that the kernels were made with
}

// normals are the kernels along a Continuous dimension, in the order of the
// identifiers.
type normals struct {
	at       int
	means    []float64
	inverses []float64 // 1/(bandwidth*sqrt(2)); 0 where it is not active
	norms    []float64 // log of what the kernel is divided by
}

// ordered is an Ordered dimension: level i has the cell from edges[i] to
// edges[i+1], which reaches half way to its neighbours.
type ordered struct {
	at    int
	dim   box.Dim
	edges []float64
	prior *cell
	// shared cells, by mean and bandwidth.
	shared map[cellKey]*cell
}

// choice is a Choice dimension with the log masses of its kernels.
type choice struct {
	at          int
	count       int
	same, other float64
	prior       float64
	counts      []int // of the observations
	active      int   // sum of the counts
}

// axis has the observations that are active in a dimension, ascending by value
// and then by identifier.
type axis struct {
	at      int
	entries []entry
}

type entry struct {
	value float64
	id    int
}

func compare(a, b entry) int {
	switch {
	case a.value < b.value:
		return -1
	case a.value > b.value:
		return 1
	}
	return a.id - b.id
}

// New is the mixture of the prior alone, over the given columns of rows that
// have the dimensions dims. The prior of a numeric dimension is a normal around
// the middle with the dimension's range as its bandwidth.
func New(dims []box.Dim, columns []int, config Config) *Mixture {
	m := &Mixture{config: config, prior: 1}
	for _, i := range columns {
		d := dims[i]
		switch d.Kind {
		case box.Continuous:
			m.real = append(m.real, normals{at: i})
		case box.Ordered:
			m.levels = append(m.levels, newOrdered(i, d))
		case box.Choice:
			m.choices = append(m.choices, choice{at: i, count: d.Count, counts: make([]int, d.Count)})
		}
	}
	for _, k := range m.real {
		m.axes = append(m.axes, axis{at: k.at})
	}
	for _, o := range m.levels {
		m.axes = append(m.axes, axis{at: o.at})
	}
	m.Clear()
	return m
}

func newOrdered(at int, d box.Dim) ordered {
	o := ordered{at: at, dim: d, edges: make([]float64, len(d.Levels)+1)}
	for i := 1; i < len(d.Levels); i++ {
		o.edges[i] = (d.Levels[i-1] + d.Levels[i]) / 2
	}
	o.edges[len(d.Levels)] = 1
	o.prior = newCell(cellKey{mean: 0.5, bandwidth: 1}, o.edges)
	return o
}

// Clear removes all observations.
func (m *Mixture) Clear() {
	m.ids, m.rows, m.heights, m.cells = m.ids[:0], m.rows[:0], m.heights[:0], m.cells[:0]
	for j := range m.real {
		k := &m.real[j]
		k.means, k.inverses, k.norms = k.means[:0], k.inverses[:0], k.norms[:0]
	}
	m.weights, m.prior = m.weights[:0], 1
	for a := range m.axes {
		m.axes[a].entries = m.axes[a].entries[:0]
	}
	for j := range m.choices {
		clear(m.choices[j].counts)
		m.choices[j].active = 0
	}
	m.minimum = m.clip()
	m.weighChoices()
}

// clip is the smallest bandwidth for the present number of observations.
func (m *Mixture) clip() float64 {
	least := math.Max(m.config.Narrowest, narrowest)
	if m.config.Clip > 0 {
		least = math.Max(least, 1/math.Min(m.config.Clip, float64(len(m.ids))+2))
	}
	return math.Min(least, 1)
}

// Insert adds an observation with an identifier that no other has; NaN in its
// row means that the dimension is not active there, and the kernel then is that
// of no knowledge: uniform. The row is kept and must not change. Weigh must
// follow before the mixture is used.
func (m *Mixture) Insert(id int, row []float64) {
	at, _ := slices.BinarySearch(m.ids, id)
	m.ids = slices.Insert(m.ids, at, id)
	m.rows = slices.Insert(m.rows, at, row)
	m.insertKernels(at, 1)
	m.count(row, 1)
	var touched []place
	for a := range m.axes {
		touched = m.enter(a, entry{value: row[m.axes[a].at], id: id}, touched)
	}
	m.settle(touched)
}

// insertKernels makes room for n kernels, which are uniform in each dimension.
func (m *Mixture) insertKernels(at, n int) {
	zeros := make([]float64, n)
	m.heights = slices.Insert(m.heights, at, zeros...)
	for j := range m.real {
		k := &m.real[j]
		k.means = slices.Insert(k.means, at, slices.Repeat([]float64{0.5}, n)...)
		k.inverses, k.norms = slices.Insert(k.inverses, at, zeros...), slices.Insert(k.norms, at, zeros...)
	}
	m.cells = slices.Insert(m.cells, at*len(m.levels), make([]*cell, n*len(m.levels))...)
}

// count adds change to how often the choices of a row are.
func (m *Mixture) count(row []float64, change int) {
	for j := range m.choices {
		if i := m.choices[j].index(row); i >= 0 {
			m.choices[j].counts[i] += change
			m.choices[j].active += change
		}
	}
}

// Remove takes an observation away; nothing happens when there is none with
// this identifier. Weigh must follow before the mixture is used.
func (m *Mixture) Remove(id int) {
	at, ok := slices.BinarySearch(m.ids, id)
	if !ok {
		return
	}
	var touched []place
	for a := range m.axes {
		touched = m.leave(a, entry{value: m.rows[at][m.axes[a].at], id: id}, touched)
	}
	m.count(m.rows[at], -1)
	m.ids = slices.Delete(m.ids, at, at+1)
	m.rows = slices.Delete(m.rows, at, at+1)
	m.heights = slices.Delete(m.heights, at, at+1)
	for j := range m.real {
		k := &m.real[j]
		k.means, k.inverses, k.norms = slices.Delete(k.means, at, at+1), slices.Delete(k.inverses, at, at+1), slices.Delete(k.norms, at, at+1)
	}
	m.cells = slices.Delete(m.cells, at*len(m.levels), (at+1)*len(m.levels))
	m.settle(touched)
}

// Fill replaces all observations, which have ascending identifiers: the same as
// inserting one after another, at less cost when there are many.
func (m *Mixture) Fill(ids []int, rows [][]float64) {
	m.Clear()
	m.ids = append(m.ids, ids...)
	m.rows = append(m.rows, rows...)
	m.insertKernels(0, len(ids))
	for _, row := range rows {
		m.count(row, 1)
	}
	for a := range m.axes {
		x := &m.axes[a]
		for i, id := range ids {
			if v := rows[i][x.at]; !math.IsNaN(v) {
				x.entries = append(x.entries, entry{value: v, id: id})
			}
		}
		slices.SortFunc(x.entries, compare)
	}
	m.minimum = m.clip()
	m.rebuild()
}

// Weigh sets the weights of the observations, in the order of the identifiers;
// nil means 1 each. They must be at least 0.
func (m *Mixture) Weigh(weights []float64) {
	m.weights = slices.Grow(m.weights[:0], len(m.ids))[:len(m.ids)]
	sum := m.config.PriorWeight
	for i := range m.weights {
		m.weights[i] = 1
		if weights != nil {
			m.weights[i] = weights[i]
		}
		sum += m.weights[i]
	}
	if !(sum > 0) { // neither prior nor observations
		m.prior = 1
		clear(m.weights)
		return
	}
	for i := range m.weights {
		m.weights[i] /= sum
	}
	m.prior = m.config.PriorWeight / sum
}
