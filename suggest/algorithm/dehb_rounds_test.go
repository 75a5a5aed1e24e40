package algorithm_test

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// In its second round, DEHB evolves at each resource, and a trial of a larger
// resource is no promotion.
func TestDEHBEvolvesInTheSecondRound(t *testing.T) {
	w := newWorld(t, "dehb", unit(), suggest.Setting{Name: "r_max", Value: "9"})
	w.play(22+22, 1)
	want := map[string]int{
		"bracket 0: 1": 9, "bracket 0: 3": 3, "bracket 0: 9": 1, "bracket 1: 3": 5, "bracket 1: 9": 1, "bracket 2: 9": 3,
		"bracket 3: 1": 9, "bracket 3: 3": 3, "bracket 3: 9": 1, "bracket 4: 3": 5, "bracket 4: 9": 1, "bracket 5: 9": 3,
	}
	if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, trial := range w.study.Trials {
		_, promoted := trial.Meta["parent"]
		first := slices.Contains([]string{"0", "1", "2"}, trial.Meta["bracket"])
		if rung := trial.Meta["rung"]; promoted != (first && rung != "0") {
			t.Errorf("trial %d, %v, is a promotion: %v", trial.Number, trial.Meta, promoted)
		}
		if slot, err := strconv.Atoi(trial.Meta["slot"]); err != nil || slot < 0 || slot >= 9 {
			t.Errorf("trial %d has the slot %q", trial.Number, trial.Meta["slot"])
		}
	}
}

// Evolution comes nearer to the best point than random search does.
func TestDEHBConverges(t *testing.T) {
	specs := []suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "y", Kind: suggest.Double, Min: "0", Max: "1"},
		{Name: "z", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "c", Kind: suggest.Categorical, List: []string{"a", "b", "c"}},
	}
	far := func(t *suggest.Trial) (suggest.State, float64) {
		sum := 0.0
		for _, v := range t.Point[:3] {
			sum += (v.Float() - 0.7) * (v.Float() - 0.7)
		}
		if t.Point[3].String() != "b" {
			sum += 0.1
		}
		return suggest.Succeeded, sum
	}
	best := func(name string) float64 {
		w := newWorld(t, name, specs, suggest.Setting{Name: "r_max", Value: "9"})
		w.end = far
		w.play(400, 4)
		least := math.Inf(1)
		for _, trial := range w.study.Trials {
			least = min(least, trial.Values[0])
		}
		return least
	}
	if evolved, random := best("dehb"), best("hyperband"); !(evolved < random/3) {
		t.Errorf("dehb comes to %v, hyperband to %v", evolved, random)
	}
}
