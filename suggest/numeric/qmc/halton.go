package qmc

import (
	"fmt"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// MaxHaltonDimensions is how many dimensions a Halton sequence may have. The
// points of the last ones are spread evenly only after thousands of them.
const MaxHaltonDimensions = MaxDimensions

// resolution is how fine the coordinates are: digits beyond it do not show in a
// float64.
const resolution = 1 << 53

// Halton is the Halton sequence (1960): coordinate d of point i has the digits
// of i to the base of the d-th prime in reverse. A Halton does not change and
// may be shared.
type Halton struct {
	bases     []uint64
	scrambles []rng.Key // empty: not scrambled
}

// NewHalton is the plain sequence in the given number of dimensions, from 1 to
// MaxHaltonDimensions.
func NewHalton(dimensions int) (*Halton, error) {
	if dimensions < 1 || dimensions > MaxHaltonDimensions {
		return nil, fmt.Errorf("a Halton sequence has from 1 to %d dimensions, not %d", MaxHaltonDimensions, dimensions)
	}
	h := &Halton{}
	for n := uint64(2); len(h.bases) < dimensions; n++ {
		if prime(n, h.bases) {
			h.bases = append(h.bases, n)
		}
	}
	return h, nil
}

// prime says whether none of the smaller primes divides n.
func prime(n uint64, smaller []uint64) bool {
	for _, p := range smaller {
		if n%p == 0 {
			return false
		}
	}
	return true
}

// NewScrambledHalton permutes the digits at random, at each place of each
// dimension in its own way (Owen, "A randomized Halton algorithm in R", arXiv
// 1706.02808): each point is uniform in the box, and the correlation between
// dimensions with large bases goes. Different keys give independent scramblings.
func NewScrambledHalton(dimensions int, key rng.Key) (*Halton, error) {
	h, err := NewHalton(dimensions)
	if err != nil {
		return nil, err
	}
	for d := range dimensions {
		h.scrambles = append(h.scrambles, key.At(uint64(d)))
	}
	return h, nil
}

// At writes the point with the given index into u, which has one place for each
// dimension. Coordinates of a scrambled sequence lie strictly between 0 and 1,
// those of a plain one in [0, 1).
func (h *Halton) At(index uint64, u []float64) {
	for d, base := range h.bases {
		if h.scrambles == nil {
			u[d] = radicalInverse(index, base)
		} else {
			u[d] = h.scrambled(index, d)
		}
	}
}

func radicalInverse(index, base uint64) float64 {
	digits, scale := uint64(0), uint64(1)
	for index > 0 && scale <= resolution {
		digits = digits*base + index%base
		index /= base
		scale *= base
	}
	return float64(digits) / float64(scale)
}

func (h *Halton) scrambled(index uint64, d int) float64 {
	base := h.bases[d]
	x, part := 0.0, 1.0
	for place := uint64(0); part > 1./resolution; place++ {
		digit := rng.NewPermutation(base, h.scrambles[d].At(place)).At(index % base)
		index /= base
		part /= float64(base)
		x += float64(digit) * part
	}
	return min(x+part/2, 1-1./resolution)
}
