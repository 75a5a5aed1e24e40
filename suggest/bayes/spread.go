package bayes

import (
	"context"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// streams are the randomness of a study.
type streams uint64

// stream for a purpose and the trial with a number.
func (s streams) stream(purpose string, number int) *rng.Stream {
	return rng.New(uint64(s), Name, number, purpose)
}

// spread is the point of a scrambled Sobol sequence with the trial's number, or
// a random one where that was tried or is forbidden. The numbers of the first
// trial are in the middle, where users expect something good when they choose
// ranges.
func spread(ctx context.Context, d *data, tried *propose.Tried, seed streams, number int) (p suggest.Point, middle bool, err error) {
	u := make([]float64, d.space.Len())
	first := len(u) > 0 && len(u) <= qmc.MaxDimensions
	stream := seed.stream("spread", number)
	draw := func() suggest.Point {
		middle = false
		if first {
			first = false
			if sobol, err := qmc.NewScrambledSobol(len(u), rng.NewKey(uint64(seed), Name, "sobol")); err == nil {
				sobol.At(uint32(number), u)
				middle = number == 0 && centre(d.space, u)
				return d.whole(d.space.Decode(u))
			}
		}
		stream.Fill(u)
		return d.whole(d.space.Decode(u))
	}
	p, err = tried.Untried(ctx, draw, seed.stream("untried", number))
	return p, middle, err
}

// centre moves the numbers of a point to the middle of their distributions, and
// says whether there are any.
func centre(space suggest.Space, u []float64) (any bool) {
	for i := range u {
		if space.At(i).Kind() != suggest.Categorical {
			u[i], any = 0.5, true
		}
	}
	return any
}
