package bayes

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

// sample is what one model learns from.
type sample struct {
	gp.Data
	// role names the model; its hyperparameters are kept under this name.
	role string
	// results is how many results there are, which decides when to fit again.
	results int
	// prior of the hyperparameters: gp.Stationary, unless something else is known.
	prior func([]box.Dim) gp.Prior
}

// newSample makes equal rows one: their values are averaged, and weigh as much
// more as they are many.
func newSample(role string, rows [][]float64, values []float64) sample {
	at := make(map[string]int, len(rows))
	s := sample{role: role, prior: gp.Stationary}
	var counts []float64
	for i, row := range rows {
		key := history.RowKey(row)
		k, ok := at[key]
		if !ok {
			k = len(s.Rows)
			at[key] = k
			s.Rows, s.Outcomes, counts = append(s.Rows, row), append(s.Outcomes, 0), append(counts, 0)
		}
		counts[k]++
		s.Outcomes[k] += (values[i] - s.Outcomes[k]) / counts[k]
	}
	for _, c := range counts {
		s.Weights = append(s.Weights, 1/c)
	}
	return s
}

// constant says that there is nothing to learn: all outcomes are the same.
func (s sample) constant() bool { return slices.Min(s.Outcomes) == slices.Max(s.Outcomes) }

// equal says whether two samples make the same model.
func (s sample) equal(o sample) bool {
	return slices.Equal(s.Outcomes, o.Outcomes) && slices.Equal(s.Weights, o.Weights) && slices.EqualFunc(s.Rows, o.Rows, history.SameRow)
}

// thinned has at most so many rows, evenly among all.
func (s sample) thinned(most int) gp.Data {
	n := len(s.Rows)
	if n <= most {
		return s.Data
	}
	var d gp.Data
	for k := range most {
		i := k * n / most
		d.Rows, d.Outcomes, d.Weights = append(d.Rows, s.Rows[i]), append(d.Outcomes, s.Outcomes[i]), append(d.Weights, s.Weights[i])
	}
	return d
}

// subsetEvery is after how many results a subset is chosen anew; in between the
// new ones are added to it.
const subsetEvery = 25

// subset picks rows for a model: all of them up to most, else the best three
// eighths, the nearest to the best one three eighths, and the rest evenly among
// the others. It gives their positions in ascending order.
func subset(rows [][]float64, losses []float64, most int) []int {
	n := len(rows)
	first := n / subsetEvery * subsetEvery
	if n <= most || first <= most {
		return rangeOf(n)
	}
	chosen := make([]bool, n)
	order := ascending(losses[:first])
	best := rows[order[0]]
	part := most * 3 / 8
	rest := order[part:]
	far := make([]float64, first)
	for _, i := range rest {
		far[i] = apartness(rows[i], best)
	}
	slices.SortFunc(rest, func(i, j int) int { return cmp.Or(cmp.Compare(far[i], far[j]), cmp.Compare(i, j)) })
	for _, i := range order[:2*part] {
		chosen[i] = true
	}
	rest = rest[part:]
	slices.Sort(rest)
	for _, i := range evenly(rest, most-2*part) {
		chosen[i] = true
	}
	out := make([]int, 0, most+subsetEvery)
	for i := range n {
		if chosen[i] || i >= first {
			out = append(out, i)
		}
	}
	return out
}

// evenly takes count elements.
func evenly(from []int, count int) []int {
	out := make([]int, count)
	for k := range out {
		out[k] = from[k*len(from)/count]
	}
	return out
}

func rangeOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// ascending gives the positions in order of their values.
func ascending(y []float64) []int {
	order := rangeOf(len(y))
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(y[i], y[j]), cmp.Compare(i, j)) })
	return order
}

// apartness is the squared distance of two rows; a difference in what is no
// number counts as 1.
func apartness(a, b []float64) float64 {
	sum := 0.0
	for d, x := range a {
		diff := x - b[d]
		if math.IsNaN(diff) && math.IsNaN(x) != math.IsNaN(b[d]) || math.Abs(diff) > 1 {
			diff = 1
		}
		if diff == diff {
			sum += diff * diff
		}
	}
	return sum
}
