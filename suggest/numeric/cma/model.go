// Package cma has the covariance matrix adaptation evolution strategy (CMA-ES)
// as plain values: full or separable, for numbers, ordered levels and choices,
// with restarts and a warm start. It lives in the unit box of package box and
// knows neither trials nor files: the caller brings samples and their ranks.
package cma

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/normal"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Options of a Model. All but Dims have defaults.
type Options struct {
	// Dims of the box.
	Dims []box.Dim
	// Population is how many results make a generation; by default
	// DefaultPopulation of all dimensions.
	Population int
	// Sigma is the initial standard deviation of a number; 1/6 by default.
	Sigma float64
	// Separable keeps the diagonal of the covariance only: linear in the number
	// of dimensions, and blind to dependencies.
	Separable bool
	// Start is where the search begins; by default in the middle, with equal
	// probabilities.
	Start *Start
}

// Start is a distribution to begin with.
type Start struct {
	// Mean of each dimension; that of a choice is not read.
	Mean []float64
	// Sigma is the standard deviation; Options.Sigma when 0.
	Sigma float64
	// Covariance of the dimensions that are no choices, row-major, to be
	// multiplied by the square of Sigma; the identity when nil.
	Covariance []float64
	// Probabilities of the choices of each dimension that has some, in order.
	Probabilities [][]float64
}

// Candidate is a result.
type Candidate struct {
	// Row is the sample as Model.Sample gave it, before it was moved into the
	// box and to a level, or any point of the box; NaN where a dimension was not
	// active.
	Row []float64
	// Rank says how good it is: smaller is better, equal is equally good.
	Rank int
	// Foreign says that it is no sample of the present distribution. Its
	// distance from the mean is then cut to what a sample might have.
	Foreign bool
}

// Model is the distribution that samples come from. Its methods do not change
// it unless they say so.
type Model struct {
	options Options
	numbers []int // dimensions of the gaussian
	choices []int // dimensions of the categories
	ordered int   // how many of numbers have levels
	gauss   *gaussian
	cats    *categories
	window  []float64 // best losses of the latest generations, oldest first
	differ  bool      // whether one result was ever better than another
	// Generation counts the updates.
	Generation int
}

// New begins a search.
func New(o Options) *Model {
	m := &Model{options: o}
	for i, dim := range o.Dims {
		switch {
		case constant(dim):
		case dim.Kind == box.Choice:
			m.choices = append(m.choices, i)
		default:
			m.numbers = append(m.numbers, i)
			if dim.Kind == box.Ordered {
				m.ordered++
			}
		}
	}
	if m.options.Population <= 0 {
		m.options.Population = DefaultPopulation(m.Free())
	}
	if !(o.Sigma > 0) {
		m.options.Sigma = 1. / 6
	}
	m.begin(o.Start)
	return m
}

// constant says whether a dimension has one value only.
func constant(dim box.Dim) bool {
	return dim.Kind == box.Choice && dim.Count < 2 || dim.Kind == box.Ordered && len(dim.Levels) < 2
}

func (m *Model) begin(start *Start) {
	mean, sigma := slices.Repeat([]float64{0.5}, len(m.numbers)), m.options.Sigma
	var covariance []float64
	probabilities := make([][]float64, len(m.choices))
	for k, i := range m.choices {
		n := m.options.Dims[i].Count
		probabilities[k] = slices.Repeat([]float64{1 / float64(n)}, n)
	}
	if start != nil {
		for k, i := range m.numbers {
			mean[k] = start.Mean[i]
		}
		if start.Sigma > 0 {
			sigma = start.Sigma
		}
		covariance = start.Covariance
		if start.Probabilities != nil {
			probabilities = start.Probabilities
		}
	}
	if len(m.numbers) > 0 {
		m.gauss = newGaussian(mean, sigma, covariance, m.options.Separable)
		m.keepMargins(m.options.Population)
	}
	if len(m.choices) > 0 {
		m.cats = newCategories(probabilities, m.ordered)
	}
}

// Clone is a copy that shares nothing that changes.
func (m *Model) Clone() *Model {
	c := *m
	if m.gauss != nil {
		c.gauss = m.gauss.clone()
	}
	if m.cats != nil {
		c.cats = m.cats.clone()
	}
	c.window = slices.Clone(m.window)
	return &c
}

// Population is how many results make a generation.
func (m *Model) Population() int { return m.options.Population }

// Mean of the distribution: of a choice, the most probable one.
func (m *Model) Mean() []float64 {
	row := make([]float64, len(m.options.Dims))
	m.fix(row)
	for k, i := range m.numbers {
		row[i] = m.gauss.mean[k]
	}
	for k, i := range m.choices {
		row[i] = float64(slices.Index(m.cats.q[k], slices.Max(m.cats.q[k])))
	}
	return row
}

// fix sets the dimensions that have one value.
func (m *Model) fix(row []float64) {
	for i, dim := range m.options.Dims {
		if constant(dim) {
			row[i] = 0
			if len(dim.Levels) > 0 {
				row[i] = dim.Levels[0]
			}
		}
	}
}

// Deviation is the largest standard deviation of a number; 0 without numbers.
func (m *Model) Deviation() float64 {
	most := 0.0
	for k := range m.numbers {
		most = math.Max(most, m.gauss.deviation(k))
	}
	return most
}

// Free is how many dimensions have something to learn.
func (m *Model) Free() int { return len(m.numbers) + len(m.choices) }

// Sample draws a point into row. It may lie outside of the box, in numbers,
// and between levels: the point that is meant is the nearest one of the box. A
// sample outside is drawn once more, so that not too many lie there, while an
// optimum on the box's side is still met exactly.
//
// u, when it is not nil, has a number between 0 and 1 for each of the Free
// dimensions and takes the place of the first random ones: a low-discrepancy
// sequence makes the samples of a generation cover the distribution evenly
// (Teytaud and Gelly, "DCMA: yet another derandomization in covariance-matrix-
// adaptation", 2007).
func (m *Model) Sample(stream *rng.Stream, u, row []float64) {
	m.fix(row)
	d := len(m.numbers)
	if d > 0 {
		z, y := make([]float64, d), make([]float64, d)
		for k := range z {
			if u != nil {
				z[k] = normal.Quantile(math.Min(math.Max(u[k], 0x1p-50), 1-0x1p-50))
			} else {
				z[k] = stream.NormFloat64()
			}
		}
		if !m.place(z, y, row) {
			for k := range z {
				z[k] = stream.NormFloat64()
			}
			m.place(z, y, row)
		}
	}
	for k, i := range m.choices {
		v := 0.0
		if u != nil {
			v = u[d+k]
		} else {
			v = stream.Float64()
		}
		row[i] = float64(m.cats.draw(k, v))
	}
}

// place puts the sample of standard normals z into row and says whether it lies
// in the box. Numbers with levels may lie anywhere.
func (m *Model) place(z, y, row []float64) bool {
	m.gauss.colour(z, y)
	inside := true
	for k, i := range m.numbers {
		row[i] = m.gauss.mean[k] + m.gauss.sigma*m.gauss.margin[k]*y[k]
		inside = inside && (m.options.Dims[i].Kind != box.Continuous || row[i] >= 0 && row[i] <= 1)
	}
	return inside
}

// Update learns from the results of a generation, best first, and changes the
// model. best is the smallest loss among them, NaN when there is none. There
// may be more or fewer results than Population; of fewer than two nothing is
// learned.
func (m *Model) Update(results []Candidate, best float64) {
	m.Generation++
	if !math.IsNaN(best) {
		m.window = append(m.window, best)
		if long := m.patience(); len(m.window) > long {
			m.window = m.window[len(m.window)-long:]
		}
	}
	if len(results) < 2 {
		return
	}
	p := NewParameters(max(1, len(m.numbers)), len(results), m.options.Separable)
	forMean, forCovariance := shared(results, p.Weights)
	if m.gauss != nil {
		steps := make([]step, len(results))
		for r, result := range results {
			steps[r] = step{y: m.steps(result), mean: forMean[r], covariance: forCovariance[r]}
		}
		if m.differ = m.differ || results[0].Rank != results[len(results)-1].Rank; m.differ {
			m.gauss.update(steps, p)
		} else {
			most := 1.0
			if m.ordered > 0 { // what lies outside of the box is moved to the ends of levels
				most = 0.4
			}
			m.gauss.widen(p, most)
		}
		for k, i := range m.numbers {
			if m.options.Dims[i].Kind == box.Continuous {
				m.gauss.mean[k] = math.Min(math.Max(m.gauss.mean[k], 0), 1)
			}
		}
		m.keepMargins(len(results))
	}
	if m.cats != nil {
		chosen := make([][]int, len(results))
		for r, result := range results {
			chosen[r] = m.chosen(result)
		}
		m.cats.update(chosen, forMean)
	}
}

// shared gives results of equal rank the same weights: the mean of theirs. The
// weights for the mean have no negative part.
func shared(results []Candidate, weights []float64) (forMean, forCovariance []float64) {
	forMean, forCovariance = make([]float64, len(results)), make([]float64, len(results))
	for begin := 0; begin < len(results); {
		end := begin
		positive, all := 0.0, 0.0
		for ; end < len(results) && results[end].Rank == results[begin].Rank; end++ {
			positive += math.Max(0, weights[end])
			all += weights[end]
		}
		for k := begin; k < end; k++ {
			forMean[k], forCovariance[k] = positive/float64(end-begin), all/float64(end-begin)
		}
		begin = end
	}
	return forMean, forCovariance
}

// steps is y of a result. That of a foreign one is no longer than a sample's
// may be (Hansen, arXiv 1110.4181, equation 4).
func (m *Model) steps(c Candidate) []float64 {
	g := m.gauss
	y := make([]float64, g.d)
	for k, i := range m.numbers {
		if v := c.Row[i]; !math.IsNaN(v) {
			y[k] = (v - g.mean[k]) / (g.sigma * g.margin[k])
		}
	}
	if !c.Foreign {
		return y
	}
	d := float64(g.d)
	length := g.length(y, make([]float64, g.d))
	if most := math.Sqrt(d) + 2*d/(d+2); length > most {
		for k := range y {
			y[k] *= most / length
		}
	}
	return y
}

func (m *Model) chosen(c Candidate) []int {
	out := make([]int, len(m.choices))
	for k, i := range m.choices {
		out[k] = -1
		if v := c.Row[i]; v >= 0 && v < float64(m.options.Dims[i].Count) {
			out[k] = int(v)
		}
	}
	return out
}

func (m *Model) keepMargins(population int) {
	if m.ordered == 0 {
		return
	}
	alpha := 1 / float64(len(m.numbers)*population)
	for k, i := range m.numbers {
		if m.options.Dims[i].Kind == box.Ordered {
			m.gauss.keepMargin(k, m.options.Dims[i], alpha)
		}
	}
}

// patience is over how many generations the best loss must not change for the
// search to be over.
func (m *Model) patience() int {
	return 10 + int(math.Ceil(30*float64(m.Free())/float64(m.options.Population)))
}

// Stop says why going on is of no use; empty when it is of use. scale is what
// differences between losses are compared to, for example those of the first
// generation.
func (m *Model) Stop(scale float64) string {
	if len(m.window) >= m.patience() {
		low, high := slices.Min(m.window), slices.Max(m.window)
		if high/2-low/2 <= 0.5e-12*scale {
			return "the best loss does not change"
		}
	}
	if m.gauss == nil {
		return ""
	}
	low, high := slices.Min(m.gauss.root), slices.Max(m.gauss.root)
	if high > 1e7*low {
		return "the covariance is singular"
	}
	if len(m.numbers) > m.ordered {
		for k, i := range m.numbers {
			if m.options.Dims[i].Kind == box.Continuous && m.gauss.deviation(k) > 1e-11 {
				return ""
			}
		}
		return "the step size is below what matters"
	}
	return ""
}
