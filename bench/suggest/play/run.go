package play

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"

	"github.com/vernier-ml/vernier/bench/suggest/problem"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Evaluate is what a trial of a problem measures.
type Evaluate func(ctx context.Context, number int, p suggest.Point) (problem.Outcome, error)

// Train takes the first steps of a training of a point: their losses are the outcome's
// curve, and the last of them its value.
type Train func(ctx context.Context, p suggest.Point, steps int) (problem.Outcome, error)

// Evaluator is that of a problem of this process, under a seed.
func Evaluator(p *problem.Problem, seed uint64) Evaluate {
	noise := rng.NewKey(seed, "noise", p.Name)
	return func(_ context.Context, number int, point suggest.Point) (problem.Outcome, error) {
		return p.Observe(point, noise.Stream(uint64(number))), nil
	}
}

// Run is one game to be played.
type Run struct {
	Problem  *problem.Problem
	Regime   Regime
	Seed     uint64
	Budget   int
	Evaluate Evaluate
	// Train is there where the problem is a training with a curve.
	Train Train
}

// Path is how the recommendation improved: pairs of a time (evaluations, or full
// trainings) and the true loss of what the player recommends from then on.
type Path [][2]float64

// After is the loss of the recommendation at that time; infinite before the
// first.
func (p Path) After(at float64) float64 {
	loss := math.Inf(1)
	for _, s := range p {
		if s[0] > at {
			break
		}
		loss = s[1]
	}
	return loss
}

// seed of the player. On real tasks it differs from task to task: spaces are shared
// there, and so would be the first points of a seed, so that the tasks would not be
// evidence apart from each other. The functions keep the seeds that were published.
func (g Run) seed() uint64 {
	if g.Problem.Task == nil && g.Problem.Table == nil {
		return g.Seed
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %d", g.Problem.Name, g.Seed)
	return uint64(h.Sum32())
}

func (g Run) game() Game {
	game := Game{
		Space: g.Problem.Space(), Parameters: g.Problem.Parameters, Objectives: g.Problem.Objectives(),
		Constraints: g.Problem.Constraints(), Seed: g.seed(), Budget: g.Budget, Parallel: g.Regime.Parallel,
		Steps: g.Problem.Steps(),
	}
	if g.Problem.Curve != nil {
		// The budget is steps, and how many trials it pays for is up to the player.
		game.Budget = 0
	}
	return game
}

// Played is what became of a game.
type Played struct {
	Path Path
	// Visited is the same of the best point that was tried, where trials are noisy: no
	// player can know it.
	Visited Path
	Spent   []Cost
}

// Play opens a game and plays it to its end.
func Play(ctx context.Context, o Opener, g Run) (Played, error) {
	game := g.game()
	player, err := o.Open(ctx, game)
	if err != nil {
		return Played{}, err
	}
	t := &table{Run: g, space: game.Space, player: player, judge: newJudge(g.Problem)}
	switch {
	case g.Problem.Curve != nil:
		err = t.curves(ctx)
	case g.Regime.Batch:
		err = t.batches(ctx)
	default:
		err = t.workers(ctx)
	}
	if errors.Is(err, suggest.ErrExhausted) {
		err = nil
	}
	return Played{t.judge.path, t.judge.visited, player.Spent()}, errors.Join(err, player.Close())
}

// table is where a game is played.
type table struct {
	Run
	space  suggest.Space
	player Player
	judge  *judge
	asked  int
}

// ask for n points, but not for more than the budget has.
func (t *table) ask(ctx context.Context, n int) ([]Candidate, error) {
	n = min(n, t.Budget-t.asked)
	if n <= 0 {
		return nil, nil
	}
	got, err := t.player.Ask(ctx, n)
	if len(got) > n {
		return nil, fmt.Errorf("the player gave %d points and was asked for %d", len(got), n)
	}
	t.asked += len(got)
	return got, err
}

// tell the player how evaluations ended, and hear what it would recommend now.
func (t *table) tell(ctx context.Context, results ...Result) error {
	if err := t.player.Tell(ctx, results); err != nil {
		return err
	}
	if r, can := t.player.(Recommender); can {
		if number, ok := r.Recommend(ctx); ok {
			t.judge.recommend(number)
		}
	}
	return nil
}

// finish evaluates a candidate and tells the judge.
func (t *table) finish(ctx context.Context, c Candidate) (Result, error) {
	if !t.space.Contains(c.Point) {
		return Result{}, fmt.Errorf("trial %d is not in the space: %v", c.Number, t.space.Assignments(c.Point))
	}
	o, err := t.Evaluate(ctx, c.Number, c.Point)
	if err != nil {
		return Result{}, err
	}
	t.judge.see(c, o)
	if o.Failed {
		return Result{Number: c.Number, State: suggest.Failed}, nil
	}
	return Result{Number: c.Number, State: suggest.Succeeded, Values: o.Values, Constraints: o.Constraints}, nil
}

func (t *table) batches(ctx context.Context) error {
	for t.asked < t.Budget {
		got, err := t.ask(ctx, t.Regime.Parallel)
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return errShort
		}
		results := make([]Result, len(got))
		for i, c := range got {
			if results[i], err = t.finish(ctx, c); err != nil {
				return err
			}
		}
		if err := t.tell(ctx, results...); err != nil {
			return err
		}
	}
	return nil
}

// running is a candidate on a simulated worker.
type running struct {
	Candidate
	until float64
}

// workers plays with workers that take the next point as soon as they are free.
// How long the trial with a given number takes is the same for all players.
func (t *table) workers(ctx context.Context) error {
	durations := rng.NewKey(t.Seed, "duration", t.Problem.Name)
	var now float64
	var busy []running
	for {
		got, err := t.ask(ctx, t.Regime.Parallel-len(busy))
		if err != nil && (len(busy) == 0 || !errors.Is(err, suggest.ErrExhausted)) {
			return err
		}
		for _, c := range got {
			took := math.Exp(0.5 * durations.Stream(uint64(c.Number)).NormFloat64())
			busy = append(busy, running{c, now + took})
		}
		if len(busy) == 0 {
			if t.asked < t.Budget {
				return errShort
			}
			return nil
		}
		first := 0
		for i := range busy {
			if busy[i].until < busy[first].until {
				first = i
			}
		}
		done := busy[first]
		busy = append(busy[:first], busy[first+1:]...)
		now = done.until
		r, err := t.finish(ctx, done.Candidate)
		if err != nil {
			return err
		}
		if err := t.tell(ctx, r); err != nil {
			return err
		}
	}
}
