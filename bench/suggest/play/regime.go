package play

import (
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

// Regime is a way to spend a budget.
type Regime struct {
	// Name of the regime.
	Name string
	// Suites that it is meant for.
	Suites []string
	// Parallel is how many evaluations run at once.
	Parallel int
	// Batch: the next ones start when all of them have ended. Otherwise each
	// starts as soon as a worker is free.
	Batch bool
	// Evaluations of a game with n parameters. For curves: how many full
	// trainings all steps together cost.
	Evaluations func(n int) int
}

// The names of the regimes.
const (
	Sequential = "sequential"
	BatchOf8   = "batch8"
	Async32    = "async32"
	Async64    = "async64"
	Large      = "large"
	Fidelity8  = "fidelity8"
	Fronts     = "fronts"
	Short      = "short"
	ShortBatch = "short-batch8"
)

// Regimes are all of them, in order.
func Regimes() []Regime {
	one := []string{problem.Continuous, problem.Mixed, problem.Noisy, problem.Live, problem.Tabular}
	exactly := func(k int) func(int) int { return func(int) int { return k } }
	return []Regime{
		{Sequential, one, 1, false, func(n int) int { return min(20*n, 200) }},
		{BatchOf8, one, 8, true, exactly(128)},
		{Async32, one, 32, false, exactly(256)},
		{Async64, one, 64, false, exactly(256)},
		{Large, []string{problem.Continuous}, 1, false, exactly(2000)},
		{Fidelity8, []string{problem.Fidelity, problem.LiveCurves}, 8, false, exactly(50)},
		{Fronts, []string{problem.MultiObjective}, 1, false, exactly(100)},
		// For peers that need seconds for a suggestion.
		{Short, one, 1, false, exactly(60)},
		{ShortBatch, one, 8, true, exactly(40)},
	}
}
