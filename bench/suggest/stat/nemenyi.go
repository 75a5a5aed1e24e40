package stat

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// CriticalDifference is how far the mean ranks of two of k methods over n blocks
// must be apart to differ at 5 %, whichever two they are: the test of Nemenyi
// (Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR
// 2006). It is infinite without two methods and a block.
func CriticalDifference(k, n int) float64 {
	if k < 2 || n < 1 {
		return math.Inf(1)
	}
	q := studentizedRange(k, 0.95) / math.Sqrt2
	return q * math.Sqrt(float64(k*(k+1))/(6*float64(n)))
}

// studentizedRange is the quantile of the range of k standard normal variables,
// by bisection.
func studentizedRange(k int, p float64) float64 {
	low, high := 0.0, 20.0
	for range 60 {
		mid := (low + high) / 2
		if rangeWithin(mid, k) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// rangeWithin is the probability that the range of k standard normal variables is
// at most q: k times the integral of phi(z) (Phi(z) - Phi(z-q))^(k-1), by
// Simpson's rule.
func rangeWithin(q float64, k int) float64 {
	f := func(z float64) float64 {
		return distuv.UnitNormal.Prob(z) * math.Pow(distuv.UnitNormal.CDF(z)-distuv.UnitNormal.CDF(z-q), float64(k-1))
	}
	return float64(k) * quad.Fixed(f, -8, 16, 400, quad.Legendre{}, 0)
}
