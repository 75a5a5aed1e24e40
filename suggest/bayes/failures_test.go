package bayes

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

// Half of the space fails. Once the search has converged in the other half, it
// does not go back to try its luck between the failures.
func TestConvergedSearchStaysAwayFromFailures(t *testing.T) {
	space, failures := unitCube(t, 2), 0
	for seed := range uint64(3) {
		s, a := newStudyOf(space, seed, 1), bayesian(t, space)
		s.Budget = 60
		for number := range s.Budget {
			got, err := a.Suggest(t.Context(), s, 1)
			if err != nil {
				t.Fatal(err)
			}
			x := coordinates(got[0].Point)
			trial := &suggest.Trial{Number: number, Point: got[0].Point, Meta: got[0].Meta, State: suggest.Failed}
			if x[0] <= 0.5 {
				trial.State, trial.Values = suggest.Succeeded, bowlAt(0.3)(x)
			} else if number >= 40 {
				failures++
			}
			s.Put(trial)
		}
	}
	if failures > 10 {
		t.Errorf("%d of the last 20 trials of 3 studies fail together, want at most 10", failures)
	}
}
