package play

import (
	"context"
	"errors"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Loader is a player that takes over trials that it has not proposed.
type Loader interface {
	// Load finished trials, with one value each.
	Load(ctx context.Context, points []suggest.Point, values []float64) error
}

// MeasureLatency lets a player go on from so many random trials, and asks it a
// number of times. What comes back is what each suggestion cost.
func MeasureLatency(ctx context.Context, o Opener, g Run, trials, asks int) ([]Cost, error) {
	game := g.game()
	game.Budget = trials + asks
	player, err := o.Open(ctx, game)
	if err != nil {
		return nil, err
	}
	defer func() { _ = player.Close() }()
	loader, ok := player.(Loader)
	if !ok {
		return nil, errors.New("it cannot take over trials")
	}
	points, values := make([]suggest.Point, trials), make([]float64, trials)
	key := rng.NewKey(g.Seed, "latency", g.Problem.Name)
	for i := range points {
		stream := key.Stream(uint64(i))
		u := make([]float64, game.Space.Len())
		for j := range u {
			u[j] = stream.Float64()
		}
		points[i] = game.Space.Decode(u)
		values[i] = g.Problem.Truth(points[i]).Values[0]
	}
	if err := loader.Load(ctx, points, values); err != nil {
		return nil, err
	}
	for range asks {
		got, err := player.Ask(ctx, 1)
		if err != nil {
			return nil, err
		}
		if len(got) == 0 {
			return nil, errShort
		}
		r := Result{Number: got[0].Number, State: suggest.Succeeded, Values: g.Problem.Truth(got[0].Point).Values}
		if err := player.Tell(ctx, []Result{r}); err != nil {
			return nil, err
		}
	}
	return player.Spent(), nil
}
