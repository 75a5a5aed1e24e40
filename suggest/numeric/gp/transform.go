package gp

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/numeric/normal"
)

// Transform turns losses into outcomes for a model: monotone, with mean 0 and
// variance 1, and never infinite, whatever the scale of the losses.
type Transform string

// The transforms.
const (
	// Linear only shifts and scales.
	Linear Transform = "linear"
	// HalfRank keeps the better half and gives the worse half the quantiles of a
	// normal distribution that continues it (Song et al., "The Vizier Gaussian
	// process bandit algorithm", arXiv 2408.11527, section 3.3).
	HalfRank Transform = "halfrank"
	// LogHalfRank takes the logarithm after HalfRank, which tells the best ones
	// further apart (the same, with offset 1.5).
	LogHalfRank Transform = "loghalfrank"
	// Power is the transform of Yeo and Johnson, "A new family of power
	// transformations" (Biometrika 2000), with the most likely exponent.
	Power Transform = "power"
)

// Apply transforms losses, which must be finite.
func (t Transform) Apply(losses []float64) []float64 {
	y := standardize(bounded(losses))
	if len(y) == 0 || slices.Min(y) == slices.Max(y) {
		return y
	}
	switch t {
	case HalfRank:
		y = standardize(halfRank(y))
	case LogHalfRank:
		y = halfRank(y)
		low, high := slices.Min(y), slices.Max(y)
		for i, v := range y {
			y[i] = math.Log1p((v-low)/(high-low)/2) / math.Log(1.5)
		}
		y = standardize(y)
	case Power:
		y = standardize(power(y, exponent(y)))
	}
	return y
}

// tooFar is how many times further from the median than the best one a loss may lie.
const tooFar = 1e12

// bounded brings losses nearer that lie too far on the worse side, such as that of a training
// that has diverged: scaled to them, the others would all be the same number. They stay in
// order: where the better half is all the same but for rounding, they are all the others.
func bounded(losses []float64) []float64 {
	if len(losses) == 0 {
		return losses
	}
	sorted := slices.Sorted(slices.Values(losses))
	middle := median(sorted)
	apart := tooFar * (middle - sorted[0])
	limit := middle + apart
	if limit == middle || sorted[len(sorted)-1] <= limit {
		return losses
	}
	distinct := slices.Compact(sorted)
	first, _ := slices.BinarySearch(distinct, limit)
	out := slices.Clone(losses)
	for i, v := range out {
		if at, _ := slices.BinarySearch(distinct, v); v > limit {
			out[i] = math.Min(v, limit+apart*float64(at-first+1)/float64(len(distinct)-first))
		}
	}
	return out
}

// standardize gives mean 0 and variance 1; all 0 when the losses are equal.
func standardize(x []float64) []float64 {
	y := slices.Clone(x)
	if len(y) == 0 {
		return y
	}
	low, high := slices.Min(y), slices.Max(y)
	half := high/2 - low/2 // not to overflow
	if !(half > 0) {
		clear(y)
		return y
	}
	middle := low/2 + high/2
	mean := 0.0
	for i, v := range y {
		y[i] = (v - middle) / half
		mean += y[i]
	}
	mean /= float64(len(y))
	variance := 0.0
	for i := range y {
		y[i] -= mean
		variance += y[i] * y[i]
	}
	scale := math.Sqrt(variance / float64(len(y)))
	for i := range y {
		y[i] /= scale
	}
	return y
}

func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

func halfRank(y []float64) []float64 {
	sorted := slices.Clone(y)
	slices.Sort(sorted)
	middle := median(sorted)
	distinct := slices.Compact(sorted)
	good, squares, bad := 0, 0.0, 0
	for _, v := range distinct {
		if v > middle {
			bad++
			continue
		}
		good++
		squares += (v - middle) * (v - middle)
	}
	if squares == 0 { // the better half is one value
		squares, good = 0, len(distinct)
		for _, v := range distinct {
			squares += (v - middle) * (v - middle)
		}
	}
	deviation := math.Sqrt(squares / float64(good))
	share := float64(bad)
	if _, found := slices.BinarySearch(distinct, middle); found {
		share += 0.5
	}
	out := slices.Clone(y)
	for i, v := range y {
		if v > middle {
			at, _ := slices.BinarySearch(distinct, v)
			rank := float64(len(distinct) - at) // 1 is the worst
			out[i] = middle - deviation*normal.Quantile(0.5*(rank-0.5)/share)
		}
	}
	return out
}

// power is Yeo and Johnson's transform.
func power(y []float64, lambda float64) []float64 {
	out := make([]float64, len(y))
	for i, v := range y {
		switch {
		case v >= 0 && math.Abs(lambda) < 1e-9:
			out[i] = math.Log1p(v)
		case v >= 0:
			out[i] = math.Expm1(lambda*math.Log1p(v)) / lambda
		case math.Abs(lambda-2) < 1e-9:
			out[i] = -math.Log1p(-v)
		default:
			out[i] = -math.Expm1((2-lambda)*math.Log1p(-v)) / (2 - lambda)
		}
	}
	return out
}

// exponent maximises the likelihood of a normal distribution over [-2, 2], by
// golden section.
func exponent(y []float64) float64 {
	jacobian := 0.0
	for _, v := range y {
		jacobian += math.Copysign(math.Log1p(math.Abs(v)), v)
	}
	likelihood := func(lambda float64) float64 {
		z := power(y, lambda)
		mean, variance := 0.0, 0.0
		for _, v := range z {
			mean += v
		}
		mean /= float64(len(z))
		for _, v := range z {
			variance += (v - mean) * (v - mean)
		}
		return -float64(len(z))/2*math.Log(variance/float64(len(z))+1e-300) + (lambda-1)*jacobian
	}
	const golden = 0.6180339887498949
	low, high := -2.0, 2.0
	a, b := high-golden*(high-low), low+golden*(high-low)
	fa, fb := likelihood(a), likelihood(b)
	for range 25 {
		if fa > fb {
			high, b, fb = b, a, fa
			a = high - golden*(high-low)
			fa = likelihood(a)
		} else {
			low, a, fa = a, b, fb
			b = low + golden*(high-low)
			fb = likelihood(b)
		}
	}
	return (low + high) / 2
}
