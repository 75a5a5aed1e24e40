// Package design has the algorithms that do not learn: random points, grids and
// low-discrepancy sequences.
package design

import (
	"context"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// random draws each parameter from its distribution, independently (Bergstra
// and Bengio, "Random search for hyper-parameter optimization", JMLR 13, 2012).
// The randomness of a trial depends on its number alone. In a finite space no
// point comes twice, and suggest.ErrExhausted comes once all were tried.
type random struct {
	space   suggest.Space
	seeding propose.Seeding
	reader  *history.Reader
}

var _ suggest.Algorithm = (*random)(nil)

// Random is the registration of the algorithm.
func Random() propose.Registration {
	return propose.Registration{
		Name:       "random",
		Summary:    "Draws points from the parameters' distributions. A good first choice when many trials run at once, and the yardstick for all others.",
		New:        NewRandom,
		Settings:   []propose.Setting{propose.RandomStateSetting()},
		Exhaustive: true,
	}
}

// NewRandom builds the algorithm; see Random.
func NewRandom(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	r := settings.Read()
	a := &random{space: space, reader: history.NewReader(space), seeding: propose.ReadSeeding(r)}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return a, nil
}

// Suggest implements suggest.Algorithm.
func (a *random) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	seed := a.seeding.Seed(s)
	points := rng.NewKey(seed, "random", "point")
	u := make([]float64, a.space.Len())
	turns := func(number int) propose.Drawing {
		stream := points.Stream(uint64(number))
		return propose.Drawing{Draw: func() suggest.Point {
			for i := range u {
				u[i] = stream.Float64()
			}
			return a.space.Decode(u)
		}}
	}
	return propose.NewTried(a.space, a.reader.Read(s).Rows).Fill(ctx, s.NextNumber(), n, rng.NewKey(seed, "random", "untried"), turns)
}
