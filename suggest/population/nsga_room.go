package population

import (
	"cmp"
	"math"
	"slices"
)

// surviveByRoom keeps whole fronts and, of the first one that does not fit,
// leaves out the member with the least room, one after another.
//
// It is for many objectives, where hardly any point is beaten in all of them.
// The crowding distance then keeps those that lie far out, however bad they are
// in all objectives but one. Room is the shift-based density of Li, Yang and Liu
// ("Shift-based density estimation for Pareto-based evolutionary algorithms in
// many-objective optimization", 2014): how much worse the nearest other point
// is, where objectives in which it is better count nothing. So a point has
// little room beside one that is nearly as good in some objectives and far
// better in the others.
func surviveByRoom(ranked []survivor, population int) []survivor {
	var out []survivor
	for _, front := range frontsOf(ranked) {
		n := min(len(front), population-len(out))
		if front[0].Losses != nil {
			front = roomiest(front, n)
		}
		if out = append(out, front[:n]...); len(out) == population {
			break
		}
	}
	return out
}

// roomiest are n members of a front, in order, with their room.
func roomiest(front []survivor, n int) []survivor {
	points := lossesOfMembers(front)
	unit := reach(points)
	left := make([]int, len(front))
	for i := range left {
		left[i] = i
	}
	// The nearest of those that are left, and how much worse it is.
	near, room := make([]int, len(front)), make([]float64, len(front))
	look := func(i int) {
		near[i], room[i] = -1, math.Inf(1)
		for _, j := range left {
			if j == i {
				continue
			}
			if by := shifted(points[i], points[j], unit); by < room[i] {
				near[i], room[i] = j, by
			}
		}
	}
	for i := range front {
		look(i)
	}
	for len(left) > n {
		// Among equals the last one goes.
		out := slices.MinFunc(left, func(i, j int) int { return cmp.Or(cmp.Compare(room[i], room[j]), cmp.Compare(j, i)) })
		left = slices.DeleteFunc(left, func(i int) bool { return i == out })
		for _, i := range left {
			if near[i] == out {
				look(i)
			}
		}
	}
	kept := make([]survivor, 0, n)
	for _, i := range left {
		front[i].crowd = room[i]
		kept = append(kept, front[i])
	}
	return kept
}

// reach is half of how far the values of each objective are apart: halves do
// not overflow.
func reach(points [][]float64) []float64 {
	out := make([]float64, len(points[0]))
	for j := range out {
		least, most := points[0][j], points[0][j]
		for _, p := range points {
			least, most = math.Min(least, p[j]), math.Max(most, p[j])
		}
		out[j] = most/2 - least/2
	}
	return out
}

// shifted is how much worse q is than p, with the reach of each objective as its
// unit.
func shifted(p, q, reach []float64) float64 {
	sum := 0.0
	for j := range p {
		if by := q[j]/2 - p[j]/2; by > 0 && reach[j] > 0 {
			sum += (by / reach[j]) * (by / reach[j])
		}
	}
	return math.Sqrt(sum)
}
