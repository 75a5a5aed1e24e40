// Package design has the algorithms that do not learn: random points, grids and
// low-discrepancy sequences.
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

// drawn takes the points that its kind has for a trial's number, in turn, until
// one is allowed and, in a finite space, was not tried. suggest.ErrExhausted comes
// once all points were tried.
type drawn struct {
	name    string
	space   suggest.Space
	seeding propose.Seeding
	reader  *history.Reader
	open    opener

	mu     sync.Mutex
	opened points // nil: none yet
	seed   uint64 // of opened
}

// points begins the points for the trial with the number: each call of what it
// returns writes another one to u. Both may be called from several goroutines at
// once.
type points func(number uint64) func(u []float64)

// opener gives the points of a seed in the unit box of so many dimensions.
type opener func(dimensions int, seed uint64) (points, error)

// registration of a kind for at most so many parameters; 0: any number.
func registration(name, summary string, most int, instead string, open opener) propose.Registration {
	read := func(space suggest.Space, r *suggest.SettingsReader) suggest.Algorithm {
		if most > 0 && space.Len() > most {
			r.Reject(fmt.Errorf("%s searches at most %d parameters and there are %d; use %s", name, most, space.Len(), instead))
		}
		return &drawn{name: name, space: space, reader: history.NewReader(space), seeding: propose.ReadSeeding(r), open: open}
	}
	return propose.Registration{
		Name: name, Summary: summary, New: suggest.Reading(read), Exhaustive: true,
		Settings: []propose.Setting{propose.RandomStateSetting()},
	}
}

// Suggest implements suggest.Algorithm.
func (a *drawn) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	seed := a.seeding.Seed(s)
	// A space without parameters has one point and needs no sequence, but
	// there is none of dimension 0.
	u := make([]float64, max(1, a.space.Len()))
	begin, err := a.points(len(u), seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	return propose.NewTried(a.space, a.reader.Read(s).Rows).Fill(ctx, s.NextNumber(), n, rng.NewKey(seed, a.name, "untried"), func(number int) propose.Drawing {
		write := begin(uint64(number))
		return propose.Drawing{Draw: func() suggest.Point {
			write(u)
			return a.space.Decode(u)
		}}
	})
}

// points are those of a seed. The last ones are kept, as a sequence costs more to
// make than a point.
func (a *drawn) points(dimensions int, seed uint64) (points, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opened == nil || a.seed != seed {
		opened, err := a.open(dimensions, seed)
		if err != nil {
			return nil, err
		}
		a.opened, a.seed = opened, seed
	}
	return a.opened, nil
}
