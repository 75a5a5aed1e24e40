package algorithm_test

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// A branch of a conditional space may have few points, where another one has no end of them:
// what was tried there is not tried again.
func TestNoPointOfAFiniteBranchComesTwice(t *testing.T) {
	specs := []suggest.ParameterSpec{
		suggest.Choice("model", "tree", "net"), suggest.Choice("depth", "1", "2", "3"),
		{Name: "rate", Kind: suggest.Double, Min: "0", Max: "1", When: &suggest.When{Parameter: "model", In: []string{"net"}}},
	}
	for _, name := range []string{"auto", "bayesianoptimization", "cmaes", "enas", "halton", "nsga2", "random", "regularized-evolution", "sobol", "tpe"} {
		r, _ := algorithm.Get(name)
		a, space := build(t, r, specs)
		p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 1), Parallel: 2}
		p.Objective = func(_ int, p suggest.Point) float64 {
			if p[0].String() == "net" {
				return 1 + p[2].Float()
			}
			return p[1].Float()
		}
		if err := p.Play(t.Context(), 40); err != nil {
			t.Fatal(err)
		}
		seen, again := map[string]bool{}, 0
		for _, trial := range p.Study.Trials {
			key, _ := space.Key(trial.Point)
			if seen[key] {
				again++
			}
			seen[key] = true
		}
		if again > 0 {
			t.Errorf("%s: %d of 40 trials are the same as others", name, again)
		}
	}
}
