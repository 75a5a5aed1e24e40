package algorithm_test

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// priorsComeFirst holds that an algorithm begins where good values are believed to be,
// and does not stay there.
func priorsComeFirst(t *testing.T, r propose.Registration) {
	if r.Repeats {
		t.Skip("a population has its own first members") // PBT, PB2, DARTS
	}
	specs := []suggest.ParameterSpec{
		{Name: "lr", Kind: suggest.Double, Min: "1e-5", Max: "1", Step: "1e-5", Distribution: suggest.LogUniform, Prior: &suggest.Prior{Value: "1e-2", Spread: "0.05"}},
		{Name: "width", Kind: suggest.Int, Min: "1", Max: "200", Prior: &suggest.Prior{Value: "150", Spread: "0.05"}},
		{Name: "opt", Kind: suggest.Categorical, List: []string{"a", "b", "c", "d"}, Prior: &suggest.Prior{Value: "c"}},
	}
	a, space := build(t, r, specs)
	p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 4), Objective: bowl(space)}
	if err := p.Play(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	near := func(p suggest.Point) bool {
		return math.Abs(space.At(0).Encode(p[0])-0.6) < 0.15 && math.Abs(space.At(1).Encode(p[1])-0.75) < 0.15
	}
	if first := p.Study.Trials[0].Point; !near(first) || first[2].String() != "c" {
		t.Errorf("the first trial is %v", space.Assignments(first))
	}
	count := 0
	for _, trial := range p.Study.Trials[:10] {
		if near(trial.Point) {
			count++
		}
	}
	if count < 4 || count == 10 {
		t.Errorf("%d of the first ten trials are where good values are believed to be, want 4 to 9", count)
	}
}
