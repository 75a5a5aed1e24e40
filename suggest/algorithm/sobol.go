package algorithm

import (
	"context"
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/qmc"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// sequenceStride is how far on in a sequence the next draw of a trial is: beyond
// the numbers of all trials.
const sequenceStride = 1 << 20

// sobol takes the point of a scrambled Sobol sequence that has the trial's
// number. When that is not allowed, or was tried in a finite space, it takes a point
// of a later part of the sequence that no other trial begins with. So no point
// comes twice, and suggest.ErrExhausted comes once all were tried.
// It covers the space best when the number of trials is a power of two.
type sobol struct {
	space   suggest.Space
	seeding seeding
}

var _ suggest.Algorithm = (*sobol)(nil)

func sobolRegistration() Registration {
	return Registration{
		Name:       "sobol",
		Summary:    "Spreads points evenly over the space (scrambled Sobol sequence). Better than random at the same number of trials.",
		New:        newSobol,
		Settings:   []Setting{randomStateSetting()},
		Exhaustive: true,
	}
}

func newSobol(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	r := settings.Read()
	a := &sobol{space: space, seeding: readSeeding(r)}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if space.Len() > qmc.MaxDimensions {
		return nil, fmt.Errorf("sobol searches at most %d parameters and there are %d; use random", qmc.MaxDimensions, space.Len())
	}
	return a, nil
}

// Suggest implements suggest.Algorithm.
func (a *sobol) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	seed := a.seeding.seed(s)
	// A space without parameters has one point and needs no sequence, but
	// there is none of dimension 0.
	sequence, err := qmc.NewScrambledSobol(max(1, a.space.Len()), rng.NewKey(seed, "sobol", "scramble"))
	if err != nil {
		return nil, fmt.Errorf("sobol: %w", err)
	}
	u := make([]float64, max(1, a.space.Len()))
	draw := func(number int) func() suggest.Point {
		index := uint32(number)
		return func() suggest.Point {
			sequence.At(index, u)
			index += sequenceStride
			return a.space.Decode(u)
		}
	}
	return newTried(a.space, s.Trials).propose(ctx, s, n, rng.NewKey(seed, "sobol", "untried"), draw)
}
