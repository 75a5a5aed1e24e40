package algorithm

import (
	"context"
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// halton takes the point of a scrambled Halton sequence that has the trial's
// number. When that is not allowed, or was tried in a finite space, it takes a point
// of a later part of the sequence that no other trial begins with. So no point
// comes twice, and suggest.ErrExhausted comes once all were tried.
type halton struct {
	space   suggest.Space
	seeding seeding
}

var _ suggest.Algorithm = (*halton)(nil)

func haltonRegistration() Registration {
	return Registration{
		Name:       "halton",
		Summary:    "Spreads points evenly over the space (scrambled Halton sequence). Even at any number of trials, for up to about ten parameters; sobol is better with more.",
		New:        newHalton,
		Settings:   []Setting{randomStateSetting()},
		Exhaustive: true,
	}
}

func newHalton(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	r := settings.Read()
	a := &halton{space: space, seeding: readSeeding(r)}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if space.Len() > qmc.MaxHaltonDimensions {
		return nil, fmt.Errorf("halton searches at most %d parameters and there are %d; use sobol or random", qmc.MaxHaltonDimensions, space.Len())
	}
	return a, nil
}

// Suggest implements suggest.Algorithm.
func (a *halton) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	seed := a.seeding.seed(s)
	// A space without parameters has one point and needs no sequence, but
	// there is none of dimension 0.
	sequence, err := qmc.NewScrambledHalton(max(1, a.space.Len()), rng.NewKey(seed, "halton", "scramble"))
	if err != nil {
		return nil, fmt.Errorf("halton: %w", err)
	}
	u := make([]float64, max(1, a.space.Len()))
	draw := func(number int) func() suggest.Point {
		index := uint64(number)
		return func() suggest.Point {
			sequence.At(index, u)
			index += sequenceStride
			return a.space.Decode(u)
		}
	}
	return newTried(a.space, s.Trials).propose(ctx, s, n, rng.NewKey(seed, "halton", "untried"), draw)
}
