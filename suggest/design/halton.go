package design

import (
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// Halton is the registration of the algorithm.
func Halton() propose.Registration {
	return propose.Registration{
		Name:       "halton",
		Summary:    "Spreads points evenly over the space (scrambled Halton sequence). Even at any number of trials, for up to about ten parameters; sobol is better with more.",
		New:        newHalton,
		Settings:   []propose.Setting{propose.RandomStateSetting()},
		Exhaustive: true,
	}
}

func newHalton(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	if space.Len() > qmc.MaxHaltonDimensions {
		return nil, fmt.Errorf("halton searches at most %d parameters and there are %d; use sobol or random", qmc.MaxHaltonDimensions, space.Len())
	}
	return newSequence("halton", space, settings, func(dimensions int, key rng.Key) (nthPoint, error) {
		q, err := qmc.NewScrambledHalton(dimensions, key)
		return func(index uint64, u []float64) { q.At(index, u) }, err
	})
}
