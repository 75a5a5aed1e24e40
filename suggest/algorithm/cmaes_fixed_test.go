package algorithm_test

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/design"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// A study that goes on from results has parameters with one value as any other.
func TestEvolutionGoesOnBesideParametersWithOneValue(t *testing.T) {
	specs := []suggest.ParameterSpec{
		{Name: "only", Kind: suggest.Categorical, List: []string{"adam"}},
		{Name: "c", Kind: suggest.Categorical, List: []string{"a", "b", "c"}},
		{Name: "fixed", Kind: suggest.Int, Min: "3", Max: "3"},
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"},
		{Name: "y", Kind: suggest.Double, Min: "0", Max: "1"},
	}
	for _, name := range []string{"cmaes", "auto"} {
		r, _ := algorithm.Get(name)
		a, space := build(t, r, specs)
		random, err := design.NewRandom(space, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := suggesttest.Player{Algorithm: random, Study: suggesttest.NewStudy(space, 1), Objective: bowl(space)}
		if err := p.Play(t.Context(), 320); err != nil {
			t.Fatal(err)
		}
		p.Algorithm = a
		if err := p.Play(t.Context(), 350); err != nil {
			t.Fatal(err)
		}
	}
}
