package algorithm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// The strategy that found the best trial gets four of five, and all in the second
// half of the budget; one trial in 16 is still the Gaussian process's.
func TestAutoSharesTheLaterTrials(t *testing.T) {
	built, err := newAuto(numbersOnly(t, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := built.(*automatic)
	for name, c := range map[string]struct {
		budget, from, to int
		afresh           bool
		want             map[string]int
	}{
		"first half":                     {8000, 800, 1600, false, map[string]int{bayesianName: 50, "cmaes": 600, autoAfresh: 150}},
		"first half, the other leads":    {8000, 800, 1600, true, map[string]int{bayesianName: 50, "cmaes": 150, autoAfresh: 600}},
		"second half":                    {8000, 4000, 4800, false, map[string]int{bayesianName: 50, "cmaes": 750}},
		"second half, the other leads":   {8000, 4000, 4800, true, map[string]int{bayesianName: 50, autoAfresh: 750}},
		"no budget":                      {0, 40_000, 40_800, false, map[string]int{bayesianName: 50, "cmaes": 600, autoAfresh: 150}},
		"the Gaussian process until 300": {300, 200, 300, false, map[string]int{bayesianName: 100}},
	} {
		s, got := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}, Budget: c.budget}, map[string]int{}
		for number := c.from; number < c.to; number++ {
			got[a.pick(s, number, situation{finished: number, afresh: c.afresh}).arm]++
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
