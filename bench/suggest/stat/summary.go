// Package stat has the statistics of the benchmark: summaries, paired tests,
// corrections for many tests, and the bootstrap.
package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Median of a list; NaN when it is empty. Infinities are values like others.
func Median(list []float64) float64 { return Quantile(list, 0.5) }

// Quantile of a list by linear interpolation between its sorted values, the
// default of numpy; NaN when it is empty.
func Quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low == len(sorted)-1 || sorted[low] == sorted[low+1] {
		return sorted[low]
	}
	part := at - float64(low)
	if part == 0 {
		return sorted[low]
	}
	return sorted[low] + part*(sorted[low+1]-sorted[low])
}

// Mean of a list; NaN when it is empty.
func Mean(list []float64) float64 {
	return stat.Mean(list, nil)
}
