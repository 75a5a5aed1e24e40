// Package play lets algorithms, ours and others, play the problems of the
// benchmark: one at a time, in batches, with simulated workers, and with curves
// that cost something. Nothing waits: time is simulated.
package play

import (
	"context"
	"errors"
	"time"

	"github.com/vernier-ml/vernier/suggest"
)

// Player is an algorithm at work on one problem under one seed.
type Player interface {
	// Ask for at most n points to evaluate. Fewer: wait for results. The error
	// is suggest.ErrExhausted when nothing is left.
	Ask(ctx context.Context, n int) ([]Candidate, error)
	// Tell how evaluations ended.
	Tell(ctx context.Context, results []Result) error
	// Report a value of a curve, and hear whether to stop the trial.
	Report(ctx context.Context, number int, s suggest.Sample) (stop bool, err error)
	// Spent is what each suggestion has cost so far, what was needed to digest
	// results included.
	Spent() []Cost
	// Close ends the game.
	Close() error
}

// Recommender is a player that says itself which of its trials has the best point: not
// always the one with the best value.
type Recommender interface {
	// Recommend gives the number of a trial. ok is false when it cannot tell.
	Recommend(ctx context.Context) (number int, ok bool)
}

// Candidate is a point that a player wants to see evaluated.
type Candidate struct {
	Number int
	Point  suggest.Point
	// Resource that it should be trained for, in steps; 0: all.
	Resource float64
}

// Result is how an evaluation ended.
type Result = suggest.Result

// Cost of one suggestion.
type Cost struct {
	CPU, Wall time.Duration
}

// Meter counts what suggestions cost, what was needed to digest the results
// before included.
type Meter struct {
	spent []Cost
	now   Cost // since the last suggestion
}

// Start begins to count; what it returns ends it.
func (m *Meter) Start(clock func() time.Duration) (stop func()) {
	cpu, wall := clock(), time.Now()
	return func() { m.Add(Cost{CPU: clock() - cpu, Wall: time.Since(wall)}) }
}

// Add a cost.
func (m *Meter) Add(c Cost) { m.now.CPU, m.now.Wall = m.now.CPU+c.CPU, m.now.Wall+c.Wall }

// Share what was counted between n suggestions, if there are any.
func (m *Meter) Share(n int) {
	for range n {
		m.spent = append(m.spent, Cost{CPU: m.now.CPU / time.Duration(n), Wall: m.now.Wall / time.Duration(n)})
	}
	if n > 0 {
		m.now = Cost{}
	}
}

// Spent is what each suggestion has cost so far.
func (m *Meter) Spent() []Cost { return m.spent }

// Game is what a player is told at the beginning.
type Game struct {
	Space       suggest.Space
	Parameters  []suggest.ParameterSpec
	Objectives  int
	Constraints int
	Seed        uint64
	// Budget is how many trials there will be; 0 when that is not known.
	Budget   int
	Parallel int
	// Steps of a full training; 0 when there are no curves.
	Steps int
}

// Opener starts players.
type Opener interface {
	// Open starts a game. A player of another language may go on in the process
	// of the game before, which must be closed.
	Open(ctx context.Context, g Game) (Player, error)
	// Close frees what the games have shared.
	Close() error
}

// errShort says that a player gave no point while nothing was running.
var errShort = errors.New("the player asked to wait while nothing was running")
