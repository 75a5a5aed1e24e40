package problem

import (
	"cmp"
	"slices"
)

// Hypervolume is the volume that the points dominate, up to the reference: with
// two objectives by a sweep, with three by slices along the last one. Points that
// are worse than the reference somewhere count nothing.
func Hypervolume(points [][]float64, reference []float64) float64 {
	var inside [][]float64
	for _, p := range points {
		if !slices.ContainsFunc(indices(len(p)), func(i int) bool { return !(p[i] < reference[i]) }) {
			inside = append(inside, p)
		}
	}
	if len(reference) == 2 {
		return area(inside, reference)
	}
	slices.SortFunc(inside, func(a, b []float64) int { return cmp.Compare(a[2], b[2]) })
	volume := 0.0
	for i := range inside {
		top := reference[2]
		if i+1 < len(inside) {
			top = inside[i+1][2]
		}
		if height := top - inside[i][2]; height > 0 {
			volume += height * area(slices.Clone(inside[:i+1]), reference)
		}
	}
	return volume
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// area is the hypervolume in the first two objectives. It sorts the points.
func area(points [][]float64, reference []float64) float64 {
	slices.SortFunc(points, func(a, b []float64) int { return cmp.Compare(a[0], b[0]) })
	sum, low := 0.0, reference[1]
	for _, p := range points {
		if p[1] < low {
			sum += (reference[0] - p[0]) * (low - p[1])
			low = p[1]
		}
	}
	return sum
}
