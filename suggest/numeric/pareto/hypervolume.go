package pareto

import (
	"context"
	"math"
	"slices"
)

// Reference is a reference point for the hypervolume of the points: in each
// objective max(1.1 w, 0.9 w) of the worst finite value w, and a little above 0
// when that is 0. It is NaN for an objective without a finite value.
func Reference(points [][]float64) []float64 {
	if len(points) == 0 {
		return nil
	}
	ref := make([]float64, len(points[0]))
	for j := range ref {
		w := math.Inf(-1)
		for _, p := range points {
			if !math.IsInf(p[j], 0) && p[j] > w {
				w = p[j]
			}
		}
		switch {
		case math.IsInf(w, -1):
			ref[j] = math.NaN()
		case w == 0:
			ref[j] = 1e-12
		default:
			ref[j] = math.Min(math.Max(1.1*w, 0.9*w), math.MaxFloat64)
		}
	}
	return ref
}

// Hypervolume is the volume of what is dominated by the points and dominates
// ref. Points that are not better than ref in each objective add nothing. It
// is exact up to rounding: by a sweep for two and three objectives, by the
// recursion of While, Bradstreet and Barone, "A fast way of calculating exact
// hypervolumes" (2012), for more, whose time grows exponentially with the
// number of objectives. It is +Inf when it is too large for a float64.
func Hypervolume(points [][]float64, ref []float64) float64 {
	v, _ := HypervolumeWithin(context.Background(), points, ref)
	return v
}

// HypervolumeWithin is Hypervolume as long as ctx lasts, and its error after that.
func HypervolumeWithin(ctx context.Context, points [][]float64, ref []float64) (float64, error) {
	gains, kept, exponent := gainsOf(points, ref)
	if len(kept) == 0 {
		return 0, nil
	}
	for _, i := range kept {
		if slices.ContainsFunc(points[i], func(x float64) bool { return math.IsInf(x, -1) }) {
			return math.Inf(1), nil
		}
	}
	v := volume(ctx, gains)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return math.Ldexp(v, exponent), nil
}

// gainsOf says by how much the points are better than ref, in units of powers
// of two (together 2^exponent) which bring them near 1, so that no product of
// them overflows. kept are the points that are better at all.
func gainsOf(points [][]float64, ref []float64) (gains [][]float64, kept []int, exponent int) {
	for i, p := range points {
		better := true
		for j, x := range p {
			better = better && x < ref[j] // false for NaN
		}
		if better {
			kept = append(kept, i)
			gains = append(gains, make([]float64, len(ref)))
		}
	}
	for j, r := range ref {
		r = math.Min(r, math.MaxFloat64)
		best := r
		for _, i := range kept {
			best = math.Min(best, math.Max(points[i][j], -math.MaxFloat64))
		}
		_, e := math.Frexp(r - best)
		if math.IsInf(r-best, 0) {
			e = 1025
		}
		e = max(e, -1000)
		exponent += e
		half := math.Ldexp(1, -e/2) // 2^-e itself may be no float64
		rest := math.Ldexp(1, -e+e/2)
		for k, i := range kept {
			x := math.Max(points[i][j], -math.MaxFloat64)
			gains[k][j] = r*half*rest - x*half*rest
		}
	}
	return gains, kept, exponent
}

// volume is the hypervolume above the origin; gains are positive and better
// when larger. It may reorder gains. When ctx ends it is meaningless.
func volume(ctx context.Context, gains [][]float64) float64 {
	switch {
	case len(gains) == 0:
		return 0
	case len(gains) == 1:
		return product(gains[0])
	}
	switch len(gains[0]) {
	case 1:
		most := 0.0
		for _, g := range gains {
			most = math.Max(most, g[0])
		}
		return most
	case 2:
		return area(gains)
	case 3:
		return sweep(gains)
	}
	return slicing(ctx, gains)
}

func product(g []float64) float64 {
	v := 1.0
	for _, x := range g {
		v *= x
	}
	return v
}

// descending sorts by one objective, best first; ties by the others, so that
// sums do not depend on the order that the points came in.
func descending(gains [][]float64, objective int) {
	slices.SortFunc(gains, func(a, b []float64) int {
		switch {
		case a[objective] > b[objective]:
			return -1
		case a[objective] < b[objective]:
			return 1
		}
		return slices.Compare(b, a)
	})
}

func area(gains [][]float64) float64 {
	descending(gains, 0)
	sum, height := 0.0, 0.0
	for _, g := range gains {
		if g[1] > height {
			sum += g[0] * (g[1] - height)
			height = g[1]
		}
	}
	return sum
}

// sweep goes down the third objective and keeps the area that the points so
// far dominate in the other two.
func sweep(gains [][]float64) float64 {
	descending(gains, 2)
	var stairs [][]float64 // descending in the first objective, ascending in the second
	sum, covered := 0.0, 0.0
	for k, g := range gains {
		var more float64
		stairs, more = climb(stairs, g)
		covered += more
		next := 0.0
		if k+1 < len(gains) {
			next = gains[k+1][2]
		}
		sum += covered * (g[2] - next)
	}
	return sum
}

// climb adds a point to the staircase and says how much area that adds.
func climb(stairs [][]float64, g []float64) (_ [][]float64, added float64) {
	begin, _ := slices.BinarySearchFunc(stairs, g[0], func(s []float64, x float64) int {
		if s[0] > x {
			return -1
		}
		return 1
	})
	below := 0.0 // the height of what lies further out
	if begin > 0 {
		below = stairs[begin-1][1]
	}
	if below >= g[1] || begin < len(stairs) && stairs[begin][0] == g[0] && stairs[begin][1] >= g[1] {
		return stairs, 0
	}
	end, from := begin, g[0]
	height := below
	for ; end < len(stairs) && stairs[end][1] <= g[1]; end++ {
		added += (from - stairs[end][0]) * (g[1] - height)
		from, height = stairs[end][0], stairs[end][1]
	}
	inner := 0.0
	if end < len(stairs) {
		inner = stairs[end][0]
	}
	added += (from - inner) * (g[1] - height)
	return slices.Replace(stairs, begin, end, g), added
}

// slicing adds up what each point adds to the points that are better in the
// last objective, which the recursion therefore need not look at.
func slicing(ctx context.Context, gains [][]float64) float64 {
	last := len(gains[0]) - 1
	descending(gains, last)
	sum := 0.0
	for k, g := range gains {
		if last > 3 && ctx.Err() != nil { // below, a slice takes no time
			break
		}
		rest := limited(gains[:k], g[:last])
		sum += g[last] * math.Max(0, product(g[:last])-volume(ctx, rest))
	}
	return sum
}

// limited is what of the points lies within g, without what is dominated.
func limited(gains [][]float64, g []float64) [][]float64 {
	flat := make([]float64, len(gains)*len(g))
	out := make([][]float64, 0, len(gains))
	for _, other := range gains {
		p := flat[:len(g):len(g)]
		flat = flat[len(g):]
		for j := range p {
			p[j] = math.Min(other[j], g[j])
		}
		if slices.ContainsFunc(out, func(q []float64) bool { return noWorse(p, q) }) {
			continue
		}
		out = slices.DeleteFunc(out, func(q []float64) bool { return noWorse(q, p) })
		out = append(out, p)
	}
	return out
}

// Select picks k of the points such that their hypervolume is large: greedily,
// each time the one that adds most, the earlier one when two add the same. That
// reaches at least 1-1/e of the largest volume possible (Guerreiro, Fonseca and
// Paquete, "Greedy hypervolume subset selection in low dimensions", 2016).
// Points that add nothing come last, in their order. The answer is in the order
// of the picks.
func Select(points [][]float64, ref []float64, k int) []int {
	k = min(k, len(points))
	gains, kept, _ := gainsOf(points, ref)
	// What a point adds only shrinks as others are picked: what it added last
	// time bounds what it can add now.
	bounds := make([]float64, len(gains))
	for i, g := range gains {
		bounds[i] = product(g)
	}
	var picked [][]float64
	out := make([]int, 0, k)
	taken := make([]bool, len(points))
	for len(out) < k {
		best, most := -1, 0.0
		for _, i := range byBound(bounds) {
			if bounds[i] < most || bounds[i] == 0 {
				break
			}
			bounds[i] = math.Max(0, product(gains[i])-volume(context.Background(), limited(picked, gains[i])))
			if bounds[i] > most || bounds[i] == most && most > 0 && i < best {
				best, most = i, bounds[i]
			}
		}
		if best < 0 {
			break
		}
		out = append(out, kept[best])
		taken[kept[best]] = true
		picked = append(picked, gains[best])
		bounds[best] = 0
	}
	for i := 0; len(out) < k; i++ {
		if !taken[i] {
			out = append(out, i)
		}
	}
	return out
}

// byBound is the order of the bounds, largest first.
func byBound(bounds []float64) []int {
	order := make([]int, len(bounds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case bounds[i] > bounds[j]:
			return -1
		case bounds[i] < bounds[j]:
			return 1
		}
		return 0
	})
	return order
}
