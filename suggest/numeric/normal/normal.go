// Package normal has the standard normal distribution, accurate in both tails.
package normal

import "math"

const (
	// logSqrt2Pi is log(sqrt(2 pi)).
	logSqrt2Pi = 0.91893853320467274178032973640562
	sqrt2Pi    = 2.50662827463100050241576528481105
)

// Density at z.
func Density(z float64) float64 { return math.Exp(-z*z/2) / sqrt2Pi }

// LogDensity at z.
func LogDensity(z float64) float64 { return -z*z/2 - logSqrt2Pi }

// Below is the probability of a value below z.
func Below(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// Quantile is the inverse of Below: -Inf at 0, +Inf at 1, NaN outside.
func Quantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }

// LogBelow is log(Below(z)), also where Below underflows.
func LogBelow(z float64) float64 {
	if z > -5 {
		return math.Log(Below(z))
	}
	return LogDensity(z) + math.Log(Mills(-z))
}

// Mills is Mills' ratio (1-Below(t))/Density(t) for t >= 0: by a continued
// fraction for large t (Abramowitz and Stegun 26.2.14).
func Mills(t float64) float64 {
	if t < 4 {
		return Below(-t) / Density(t)
	}
	f := t
	for i := 60; i >= 1; i-- {
		f = t + float64(i)/f
	}
	return 1 / f
}

// LogImprovement is log h(z) with h(z) = Density(z) + z*Below(z): the
// logarithm of the expected improvement of a standard normal (Ament et al.,
// "Unexpected improvements to expected improvement", NeurIPS 2023, equation 9).
// below and density are Below(z)/h(z) and Density(z)/h(z), which its
// derivatives need.
func LogImprovement(z float64) (logH, below, density float64) {
	if z > -5 {
		p, c := Density(z), Below(z)
		h := p + z*c
		return math.Log(h), c / h, p / h
	}
	t := -z
	ratio := Mills(t)
	rest := 1 - t*ratio // h(z)/Density(z)
	if t > 1e5 || rest <= 0 {
		rest = 1 / (t * t)
	}
	return LogDensity(t) + math.Log(rest), ratio / rest, 1 / rest
}
