package forest

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// split finds the split of the rows, whose values sum to sum, that leaves the
// least variance. ok is false when none helps.
func (g *grower) split(rows []int, sum float64) (best node, ok bool) {
	n := float64(len(rows))
	least := sum * sum / n
	least += 1e-12 * (1 + math.Abs(least))
	order := make([]int, len(g.dims))
	for i := range order {
		order[i] = i
	}
	for i := range order {
		j := i + int(g.stream.Uint64N(uint64(len(order)-i)))
		order[i], order[j] = order[j], order[i]
		d := order[i]
		try := g.splitNumber
		if g.dims[d].Kind == box.Choice {
			try = g.splitChoice
		}
		candidate, gain := try(d, rows, sum)
		if gain > least {
			best, least, ok = candidate, gain, true
		}
	}
	return best, ok
}

// gainOf is, but for a constant, by how much the variance falls.
func gainOf(sum, n, leftSum, leftN float64) float64 {
	return leftSum*leftSum/leftN + (sum-leftSum)*(sum-leftSum)/(n-leftN)
}

// splitNumber tries some random thresholds.
func (g *grower) splitNumber(d int, rows []int, sum float64) (best node, gain float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, i := range rows {
		v := g.x[i][d]
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
	}
	gain = math.Inf(-1)
	if low == high {
		return best, gain
	}
	var all [mostThresholds]float64
	tried := all[:g.thresholds]
	for k := range tried {
		tried[k] = low + g.stream.Float64()*(high-low)
		if low == inactive && high >= 0 && g.stream.Float64() < 0.5 {
			tried[k] = inactive / 2.0
		}
	}
	var left, n [mostThresholds]float64
	for _, i := range rows {
		v, y := g.x[i][d], g.y[i]
		for k, threshold := range tried {
			if v <= threshold {
				left[k] += y
				n[k]++
			}
		}
	}
	count := float64(len(rows))
	for k, threshold := range tried {
		if v := gainOf(sum, count, left[k], n[k]); n[k] > 0 && n[k] < count && v > gain {
			best, gain = node{dim: d, threshold: threshold}, v
		}
	}
	return best, gain
}

// splitChoice puts the choices in the order of their means, where the best split
// is one between neighbours (Fisher 1958). Choices that no row has go to the
// larger side.
func (g *grower) splitChoice(d int, rows []int, sum float64) (best node, gain float64) {
	type group struct {
		choice int
		sum, n float64
	}
	groups := make([]group, g.dims[d].Count+1)
	for c := range groups {
		groups[c].choice = c
	}
	for _, i := range rows {
		c := int(g.x[i][d])
		groups[c].sum += g.y[i]
		groups[c].n++
	}
	groups = slices.DeleteFunc(groups, func(a group) bool { return a.n == 0 })
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.sum/a.n, b.sum/b.n), cmp.Compare(a.choice, b.choice))
	})
	gain = math.Inf(-1)
	left, leftN, n, cut, larger := 0.0, 0.0, float64(len(rows)), 0, false
	for k := range len(groups) - 1 {
		left += groups[k].sum
		leftN += groups[k].n
		if v := gainOf(sum, n, left, leftN); v > gain {
			gain, cut, larger = v, k+1, leftN > n/2
		}
	}
	best = node{dim: d, set: slices.Repeat([]bool{larger}, g.dims[d].Count+1)}
	for k, group := range groups {
		best.set[group.choice] = k < cut
	}
	return best, gain
}
