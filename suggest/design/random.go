package design

import (
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// Random draws each parameter from its distribution, independently (Bergstra and
// Bengio, "Random search for hyper-parameter optimization", JMLR 13, 2012). The
// randomness of a trial depends on its number alone.
func Random() propose.Registration {
	summary := "Draws points from the parameters' distributions. A good first choice when many trials run at once, and the yardstick for all others."
	return registration("random", summary, 0, "", func(_ int, seed uint64) (points, error) {
		key := rng.NewKey(seed, "random", "point")
		return func(number uint64) func(u []float64) { return key.Stream(number).Fill }, nil
	})
}

// NewRandom builds random search; see Random.
func NewRandom(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	return Random().New(space, settings)
}
