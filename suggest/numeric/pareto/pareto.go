// Package pareto has the mathematics of several objectives at once: dominance,
// ranks, crowding, hypervolume and its expected improvement, and reference
// directions. Each objective is better when it is smaller; NaN counts as +Inf.
package pareto

import (
	"math"
	"slices"
)

// Dominates says whether a is at least as good as b in each objective and
// better in one.
func Dominates(a, b []float64) bool {
	better := false
	for i, x := range a {
		x, y := worst(x), worst(b[i])
		if x > y {
			return false
		}
		better = better || x < y
	}
	return better
}

// worst makes NaN +Inf.
func worst(x float64) float64 {
	if math.IsNaN(x) {
		return math.Inf(1)
	}
	return x
}

// Ranks is the front that each point belongs to: 0 when no other dominates it,
// k when it would have 0 without the points of the fronts below k (Deb et al.,
// "A fast and elitist multiobjective genetic algorithm: NSGA-II", 2002, section
// III A). Equal points have equal ranks. It takes O(n log n) for one and two
// objectives (the sweep of Jensen 2003) and O(m n^2) at worst for m (Zhang et
// al., "An efficient approach to nondominated sorting", 2015, with binary search).
func Ranks(points [][]float64) []int {
	ranks := make([]int, len(points))
	if len(points) == 0 {
		return ranks
	}
	points = withoutNaN(points)
	order := lexicographic(points)
	var fronts sorter = &members{points: points}
	if len(points[0]) <= 2 {
		fronts = &tails{points: points}
	}
	for k, i := range order {
		if k > 0 && slices.Equal(points[i], points[order[k-1]]) {
			ranks[i] = ranks[order[k-1]]
			continue
		}
		ranks[i] = fronts.place(i)
	}
	return ranks
}

// Fronts lists the points of each rank, best rank first, each in ascending order.
func Fronts(points [][]float64) [][]int {
	var out [][]int
	for i, rank := range Ranks(points) {
		for rank >= len(out) {
			out = append(out, nil)
		}
		out[rank] = append(out[rank], i)
	}
	return out
}

// Front lists the points that no other dominates, in ascending order.
func Front(points [][]float64) []int {
	var out []int
	for i, rank := range Ranks(points) {
		if rank == 0 {
			out = append(out, i)
		}
	}
	return out
}

// withoutNaN has +Inf where points has NaN.
func withoutNaN(points [][]float64) [][]float64 {
	out := slices.Clone(points)
	for i, p := range points {
		if !slices.ContainsFunc(p, math.IsNaN) {
			continue
		}
		out[i] = make([]float64, len(p))
		for j, x := range p {
			out[i][j] = worst(x)
		}
	}
	return out
}

// lexicographic is the order of the points by the first objective, then the
// second, and so on, then by position.
func lexicographic(points [][]float64) []int {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		if c := slices.Compare(points[i], points[j]); c != 0 {
			return c
		}
		return i - j
	})
	return order
}

// sorter takes different points in lexicographic order, so that none is
// dominated by a later one, and says the front of each.
type sorter interface{ place(i int) int }

// tails keeps of each front the last point, which has the front's smallest
// second objective. It is for one or two objectives.
type tails struct {
	points [][]float64
	last   []float64 // not descending
}

func (t *tails) place(i int) int {
	p := t.points[i]
	second := p[len(p)-1]
	front, _ := slices.BinarySearchFunc(t.last, second, func(last, second float64) int {
		if last <= second {
			return -1
		}
		return 1
	})
	if front == len(t.last) {
		t.last = append(t.last, 0)
	}
	t.last[front] = second
	return front
}

// members keeps the points of each front.
type members struct {
	points [][]float64
	fronts [][]int
}

func (m *members) place(i int) int {
	low, high := 0, len(m.fronts)
	for low < high {
		middle := (low + high) / 2
		if m.dominated(middle, i) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(m.fronts) {
		m.fronts = append(m.fronts, nil)
	}
	m.fronts[low] = append(m.fronts[low], i)
	return low
}

func (m *members) dominated(front, i int) bool {
	for k := len(m.fronts[front]) - 1; k >= 0; k-- { // the latest are the nearest
		if noWorse(m.points[m.fronts[front][k]], m.points[i]) {
			return true
		}
	}
	return false
}

// noWorse says whether a is at least as good as b in each objective; the points
// are different.
func noWorse(a, b []float64) bool {
	for i, x := range a {
		if x > b[i] {
			return false
		}
	}
	return true
}

// Crowding is the crowding distance of each point in a front: how far its
// neighbours are apart, in parts of the front's extent, summed over the
// objectives (Deb et al. 2002, section III B); +Inf for the ends of an
// objective. More is better for diversity. Of equal points, the first in order
// has the distance and the others 0.
func Crowding(front [][]float64) []float64 {
	distance := make([]float64, len(front))
	if len(front) == 0 {
		return distance
	}
	front = withoutNaN(front)
	order := lexicographic(front)
	unique := slices.CompactFunc(slices.Clone(order), func(i, j int) bool { return slices.Equal(front[i], front[j]) })
	for objective := range front[0] {
		slices.SortFunc(unique, func(i, j int) int {
			if x, y := front[i][objective], front[j][objective]; x < y {
				return -1
			} else if x > y {
				return 1
			}
			return i - j
		})
		spread(front, unique, objective, distance)
	}
	return distance
}

// spread adds one objective's part of the crowding distance. order is by that
// objective. Values are halved so that their difference is finite.
func spread(front [][]float64, order []int, objective int, distance []float64) {
	at := func(k int) float64 {
		return math.Max(-math.MaxFloat64, math.Min(front[order[k]][objective], math.MaxFloat64)) / 2
	}
	last := len(order) - 1
	distance[order[0]], distance[order[last]] = math.Inf(1), math.Inf(1)
	extent := at(last) - at(0)
	if extent == 0 {
		return
	}
	for k := 1; k < last; k++ {
		distance[order[k]] += (at(k+1) - at(k-1)) / extent
	}
}
