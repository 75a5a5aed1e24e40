package population

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/suggest"
)

func TestStandardise(t *testing.T) {
	for name, c := range map[string]struct{ values, want []float64 }{
		"equal values are 0":          {[]float64{3, 3, 3, 3}, []float64{0, 0, 0, 0}},
		"far out is moved in":         {[]float64{0, 0, 0, 0, 1e300}, []float64{-0.4, -0.4, -0.4, -0.4, 1.6}},
		"the largest numbers":         {[]float64{-math.MaxFloat64, 0, math.MaxFloat64}, []float64{-2, 0, 2}},
		"quartiles give the scale":    {[]float64{-2, -1, 0, 1, 2}, []float64{-1.349, -0.6745, 0, 0.6745, 1.349}},
		"the mean is 0 in the end":    {[]float64{0, 1, 2, 3, 1e9}, []float64{-1.6792, -1.0047, -0.3302, 0.3443, 2.6698}},
		"one value alone says little": {[]float64{5}, []float64{0}},
	} {
		if diff := cmp.Diff(c.want, standardise(c.values), cmpopts.EquateApprox(0, 1e-4)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestPlace(t *testing.T) {
	sorted := []float64{1, 2, 2, 5}
	for x, want := range map[float64]float64{0: 0, 1: 0.125, 2: 0.5, 3: 0.75, 9: 1} {
		if got := place(sorted, x); got != want {
			t.Errorf("place of %v is %v, want %v", x, got, want)
		}
	}
}

// The choice "late" makes progress from generation 12 on and "early" before: a
// member that never changes makes 12 steps at most.
func TestPB2LearnsChoicesThatChange(t *testing.T) {
	s := newPopulationStudy(t, 3,
		suggest.ParameterSpec{Name: "optimizer", Kind: suggest.Categorical, List: []string{"bad", "early", "late", "worse"}}, learningRate)
	train := func(trial *suggest.Trial, parent []float64) []float64 {
		progress, generation := 0.0, 0.0
		if parent != nil {
			progress, generation = parent[0], parent[1]
		}
		if want := map[bool]string{true: "early", false: "late"}[generation < 12]; trial.Point[0].String() == want {
			progress++
		}
		return []float64{progress, generation + 1}
	}
	r := trainer{
		algorithm: buildPopulation(t, PB2().New, s, nPopulation, "8"), study: s, parallel: 8,
		train: train, loss: func(_ *suggest.Trial, state []float64) float64 { return -state[0] },
	}
	r.run(t, 8*24)
	if best := -r.best(); best < 17 {
		t.Errorf("the best member made progress in %v of 24 generations, want 17 or more", best)
	}
}
