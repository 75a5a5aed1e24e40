package design

import (
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// Halton is a sequence that is even at any number of trials.
func Halton() propose.Registration {
	summary := "Spreads points evenly over the space (scrambled Halton sequence). Even at any number of trials, for up to about ten parameters; sobol is better with more."
	return registration("halton", summary, qmc.MaxHaltonDimensions, "sobol or random", func(dimensions int, seed uint64) (points, error) {
		q, err := qmc.NewScrambledHalton(dimensions, rng.NewKey(seed, "halton", "scramble"))
		return sequence("halton", seed, q.At), err
	})
}
