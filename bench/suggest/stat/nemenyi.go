package stat

import "math"

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
	const low, high, parts = -8.0, 16.0, 2400
	const step = (high - low) / parts
	f := func(z float64) float64 {
		return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * math.Pow(normalCDF(z)-normalCDF(z-q), float64(k-1))
	}
	sum := f(low) + f(high)
	for i := 1; i < parts; i++ {
		sum += float64(2+2*(i%2)) * f(low+float64(i)*step)
	}
	return float64(k) * sum * step / 3
}

func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
