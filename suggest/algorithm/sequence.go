package algorithm

import (
	"context"
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// sequenceStride is how far on in a sequence the next draw of a trial is: beyond
// the numbers of all trials.
const sequenceStride = 1 << 20

// sequence takes the point of a scrambled low-discrepancy sequence that has the
// trial's number. When that is not allowed, or was tried in a finite space, it
// takes a point of a later part of the sequence that no other trial begins with.
// So no point comes twice, and suggest.ErrExhausted comes once all were tried.
type sequence struct {
	name    string
	space   suggest.Space
	seeding seeding
	open    opener
}

// opener gives the sequence of points in the unit box of so many dimensions.
type opener func(dimensions int, key rng.Key) (at func(index uint64, u []float64), err error)

var _ suggest.Algorithm = (*sequence)(nil)

func newSequence(name string, space suggest.Space, settings suggest.Settings, open opener) (suggest.Algorithm, error) {
	r := settings.Read()
	a := &sequence{name: name, space: space, seeding: readSeeding(r), open: open}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return a, nil
}

// Suggest implements suggest.Algorithm.
func (a *sequence) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	seed := a.seeding.seed(s)
	// A space without parameters has one point and needs no sequence, but
	// there is none of dimension 0.
	u := make([]float64, max(1, a.space.Len()))
	at, err := a.open(len(u), rng.NewKey(seed, a.name, "scramble"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	return newTried(a.space, s.Trials).fill(ctx, s.NextNumber(), n, rng.NewKey(seed, a.name, "untried"), func(number int) turn {
		index := uint64(number)
		return turn{draw: func() suggest.Point {
			at(index, u)
			index += sequenceStride
			return a.space.Decode(u)
		}}
	})
}
