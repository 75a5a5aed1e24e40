package design

import (
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// Sobol is the registration of the algorithm.
func Sobol() propose.Registration {
	return propose.Registration{
		Name:       "sobol",
		Summary:    "Spreads points evenly over the space (scrambled Sobol sequence). Better than random at the same number of trials.",
		New:        newSobol,
		Settings:   []propose.Setting{propose.RandomStateSetting()},
		Exhaustive: true,
	}
}

// newSobol makes a sequence that covers the space best when the number of trials
// is a power of two. It repeats itself after 2^32 points.
func newSobol(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	if space.Len() > qmc.MaxDimensions {
		return nil, fmt.Errorf("sobol searches at most %d parameters and there are %d; use random", qmc.MaxDimensions, space.Len())
	}
	return newSequence("sobol", space, settings, func(dimensions int, key rng.Key) (nthPoint, error) {
		q, err := qmc.NewScrambledSobol(dimensions, key)
		return func(index uint64, u []float64) { q.At(uint32(index), u) }, err
	})
}
