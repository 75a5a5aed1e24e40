package stat

import (
	"cmp"
	"math"
	"slices"
)

// Wilcoxon is the two-sided p-value of the signed-rank test that the differences
// are symmetric around 0 (Wilcoxon 1945), from the exact distribution under all
// changes of sign, ties included. Differences of 0 are left out; without any
// other the p-value is 1.
func Wilcoxon(differences []float64) float64 {
	var list []float64
	for _, d := range differences {
		if d != 0 && !math.IsNaN(d) {
			list = append(list, d)
		}
	}
	doubled := doubledRanks(list)
	total, positive := 0, 0
	for i, r := range doubled {
		total += r
		if list[i] > 0 {
			positive += r
		}
	}
	// share[s] of all changes of sign give the doubled rank sum s.
	share := make([]float64, total+1)
	share[0] = 1
	reach := 0
	for _, r := range doubled {
		for s := reach; s >= 0; s-- {
			half := share[s] / 2
			share[s] = half
			share[s+r] += half
		}
		reach += r
	}
	low := min(positive, total-positive)
	tail := 0.0
	for _, p := range share[:low+1] {
		tail += p
	}
	return math.Min(1, 2*tail)
}

// doubledRanks are twice the ranks of the sizes; ties share the mean rank.
func doubledRanks(list []float64) []int {
	size := make([]float64, len(list))
	for i, d := range list {
		size[i] = math.Abs(d)
	}
	out := make([]int, len(list))
	for i, r := range Ranks(size) {
		out[i] = int(math.Round(2 * r))
	}
	return out
}

// Ranks from 1, the smallest first; equal values share the mean of their ranks.
func Ranks(list []float64) []float64 {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[a], list[b]) })
	out := make([]float64, len(list))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && list[order[j]] == list[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			out[k] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// Holm adjusts p-values for their number (Holm 1979): those at most alpha are
// significant together at the level alpha.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out := make([]float64, len(p))
	highest := 0.0
	for i, k := range order {
		highest = math.Max(highest, math.Min(1, p[k]*float64(len(p)-i)))
		out[k] = highest
	}
	return out
}
