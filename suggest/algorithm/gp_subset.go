package algorithm

import (
	"cmp"
	"math"
	"slices"
)

const (
	// modelled is how many results the model sees at most, apart from the newest.
	modelled = 500
	// subsetEvery is after how many results the subset is chosen anew; in
	// between the new ones are added to it.
	subsetEvery = 25
)

// subset bounds the rows that the model sees.
func (q *question) subset(rows [][]float64, losses []float64) []int {
	if q.levels.joint() {
		return subsetOf(rows, losses, rowsOfCurves)
	}
	return subset(rows, losses)
}

// subset picks the rows that the model sees: all of them up to modelled, else
// the best three eighths, the nearest to the best one three eighths, and the
// rest evenly among the others. It gives their positions in ascending order.
func subset(rows [][]float64, losses []float64) []int { return subsetOf(rows, losses, modelled) }

// subsetOf is the same for another number of rows.
func subsetOf(rows [][]float64, losses []float64, modelled int) []int {
	n := len(rows)
	first := n
	if n > modelled {
		first = n / subsetEvery * subsetEvery
	}
	chosen := make([]bool, n)
	if first <= modelled {
		return rangeOf(n)
	}
	order := ascending(losses[:first])
	best := rows[order[0]]
	for _, i := range order[:modelled*3/8] {
		chosen[i] = true
	}
	rest := order[modelled*3/8:]
	far := make([]float64, first)
	for _, i := range rest {
		far[i] = apartness(rows[i], best)
	}
	slices.SortFunc(rest, func(i, j int) int { return cmp.Or(cmp.Compare(far[i], far[j]), cmp.Compare(i, j)) })
	for _, i := range rest[:modelled*3/8] {
		chosen[i] = true
	}
	rest = rest[modelled*3/8:]
	slices.Sort(rest)
	count := modelled - 2*(modelled*3/8)
	for k := range count {
		chosen[rest[k*len(rest)/count]] = true
	}
	out := make([]int, 0, modelled+subsetEvery)
	for i := range n {
		if chosen[i] || i >= first {
			out = append(out, i)
		}
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
