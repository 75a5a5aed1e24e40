package algorithm

import (
	"context"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// random draws each parameter from its distribution, independently (Bergstra
// and Bengio, "Random search for hyper-parameter optimization", JMLR 13, 2012).
// The randomness of a trial depends on its number alone. In a finite space no
// point comes twice, and suggest.ErrExhausted comes once all were tried.
type random struct {
	space   suggest.Space
	seeding seeding
	points  triedPoints
}

var _ suggest.Algorithm = (*random)(nil)

func randomRegistration() Registration {
	return Registration{
		Name:       "random",
		Summary:    "Draws points from the parameters' distributions. A good first choice when many trials run at once, and the yardstick for all others.",
		New:        newRandom,
		Settings:   []Setting{randomStateSetting()},
		Exhaustive: true,
	}
}

func newRandom(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	r := settings.Read()
	a := &random{space: space, seeding: readSeeding(r)}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return a, nil
}

// Suggest implements suggest.Algorithm.
func (a *random) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	seed := a.seeding.seed(s)
	points := rng.NewKey(seed, "random", "point")
	u := make([]float64, a.space.Len())
	turns := func(number int) turn {
		stream := points.Stream(uint64(number))
		return turn{draw: func() suggest.Point {
			for i := range u {
				u[i] = stream.Float64()
			}
			return a.space.Decode(u)
		}}
	}
	known, done := a.points.open(a.space, s, false)
	defer done()
	return known.fill(ctx, s.NextNumber(), n, rng.NewKey(seed, "random", "untried"), turns)
}
