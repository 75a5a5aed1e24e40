package design

import (
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// Sobol is a sequence that covers the space best when the number of trials is a
// power of two. It repeats itself after 2^32 points.
func Sobol() propose.Registration {
	summary := "Spreads points evenly over the space (scrambled Sobol sequence). Better than random at the same number of trials."
	return registration("sobol", summary, qmc.MaxDimensions, "random", func(dimensions int, seed uint64) (points, error) {
		q, err := qmc.NewScrambledSobol(dimensions, rng.NewKey(seed, "sobol", "scramble"))
		return sequence("sobol", seed, func(index uint64, u []float64) { q.At(uint32(index), u) }), err
	})
}
