package design

import (
	"context"
	"fmt"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// sequenceLater is where the later part of a sequence begins, beyond the numbers
// of trials. sequenceEnd is where the shorter ones repeat themselves.
const (
	sequenceLater = 1 << 20
	sequenceEnd   = 1 << 32
)

// sequence takes the point of a scrambled low-discrepancy sequence that has the
// trial's number. When that is not allowed, or was tried in a finite space, it
// takes one from anywhere in the later part of the sequence: at a fixed distance
// there would be points with the same first digits, which break the same
// constraint. suggest.ErrExhausted comes once all points were tried.
type sequence struct {
	name    string
	space   suggest.Space
	seeding propose.Seeding
	open    opener
	reader  *history.Reader

	mu     sync.Mutex
	opened nthPoint // nil: none yet
	seed   uint64
}

// nthPoint gives a point of a sequence. It may be called from several goroutines
// at once.
type nthPoint func(index uint64, u []float64)

// opener gives the sequence of points in the unit box of so many dimensions.
type opener func(dimensions int, key rng.Key) (nthPoint, error)

var _ suggest.Algorithm = (*sequence)(nil)

func newSequence(name string, space suggest.Space, settings suggest.Settings, open opener) (suggest.Algorithm, error) {
	r := settings.Read()
	a := &sequence{name: name, space: space, reader: history.NewReader(space), seeding: propose.ReadSeeding(r), open: open}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return a, nil
}

// Suggest implements suggest.Algorithm.
func (a *sequence) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	seed := a.seeding.Seed(s)
	// A space without parameters has one point and needs no sequence, but
	// there is none of dimension 0.
	u := make([]float64, max(1, a.space.Len()))
	at, err := a.sequence(len(u), seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	again := rng.NewKey(seed, a.name, "again")
	return propose.NewTried(a.space, a.reader.Read(s).Rows).Fill(ctx, s.NextNumber(), n, rng.NewKey(seed, a.name, "untried"), func(number int) propose.Drawing {
		index, stream := uint64(number), again.Stream(uint64(number))
		return propose.Drawing{Draw: func() suggest.Point {
			at(index, u)
			index = sequenceLater + stream.Uint64N(sequenceEnd-sequenceLater)
			return a.space.Decode(u)
		}}
	})
}

// sequence is that of a seed. The last one is kept, as it costs more to make than
// a point.
func (a *sequence) sequence(dimensions int, seed uint64) (nthPoint, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opened != nil && a.seed == seed {
		return a.opened, nil
	}
	at, err := a.open(dimensions, rng.NewKey(seed, a.name, "scramble"))
	if err != nil {
		return nil, err
	}
	a.opened, a.seed = at, seed
	return at, nil
}
