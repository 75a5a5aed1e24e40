package algorithm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
)

// The strategy that found the best trial gets four of five, and all in the second
// half of the budget; one trial in 16 is still the Gaussian process's.
func TestAutoSharesTheLaterTrials(t *testing.T) {
	built, err := newAuto(threeNumbers(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := built.(*automatic)
	for name, c := range map[string]struct {
		budget, from, to int
		afresh           bool
		want             map[string]int
	}{
		"first half":                   {8000, 800, 1600, false, map[string]int{bayes.Name: 50, "cmaes": 600, autoAfresh: 150}},
		"first half, the other leads":  {8000, 800, 1600, true, map[string]int{bayes.Name: 50, "cmaes": 150, autoAfresh: 600}},
		"second half":                  {8000, 4000, 4800, false, map[string]int{bayes.Name: 50, "cmaes": 750}},
		"second half, the other leads": {8000, 4000, 4800, true, map[string]int{bayes.Name: 50, autoAfresh: 750}},
		"no budget":                    {0, 40_000, 40_800, false, map[string]int{bayes.Name: 50, "cmaes": 600, autoAfresh: 150}},
		"two models until 300":         {300, 210, 300, false, map[string]int{bayes.Name: 60, autoForest: 30}},
	} {
		s, got := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}, Budget: c.budget}, map[string]int{}
		for number := c.from; number < c.to; number++ {
			got[a.pick(s, number, situation{finished: number, forest: true, afresh: c.afresh}).arm]++
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The models for few results share the early trials: in a space with conditions a forest
// has most of them at first, else one of three. Where the study is not one for forests,
// others take their place.
func TestAutoSharesTheEarlyTrialsOfConditionalSpaces(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "solver", Kind: suggest.Categorical, List: []string{"adam", "sgd"}},
		{Name: "momentum", Kind: suggest.Double, Min: "0", Max: "1", When: &suggest.When{Parameter: "solver", In: []string{"sgd"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		space  suggest.Space
		forest bool
		from   int
		want   map[string]int
	}{
		"conditions":            {space, true, 0, map[string]int{bayes.Name: 15, autoForest: 36, "tpe": 9}},
		"conditions, later":     {space, true, 60, map[string]int{bayes.Name: 20, autoForest: 20, "tpe": 20}},
		"conditions, no forest": {space, false, 0, map[string]int{bayes.Name: 20, "tpe": 40}},
		"no conditions":         {threeNumbers(t), true, 0, map[string]int{bayes.Name: 40, autoForest: 20}},
		"neither":               {threeNumbers(t), false, 0, map[string]int{bayes.Name: 60}},
	} {
		built, err := newAuto(c.space, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, got := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}, Budget: 100}, map[string]int{}
		for number := c.from; number < c.from+60; number++ {
			got[built.(*automatic).pick(s, number, situation{finished: number, forest: c.forest}).arm]++
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func threeNumbers(t *testing.T) suggest.Space {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "a", Kind: suggest.Double, Min: "0", Max: "1"},
		{Name: "b", Kind: suggest.Int, Min: "0", Max: "20"},
		{Name: "c", Kind: suggest.Int, Min: "0", Max: "1000000"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// A strategy sees the trials of the other one as killed, under their own numbers:
// a sample is drawn for the number that its trial gets.
func TestStrategiesDoNotHearOfEachOther(t *testing.T) {
	space := threeNumbers(t)
	built, err := newAuto(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := built.(*automatic)
	s := suggest.Study{Space: space}
	for i := range 6 {
		trial := &suggest.Trial{Number: 2 * i, Point: space.Decode([]float64{0.1, 0.2, 0.3}), State: suggest.Succeeded, Values: []float64{1}}
		if i%2 == 1 {
			trial.Meta = suggest.Meta{autoMeta: autoAfresh}
		}
		s.Put(trial)
	}
	for arm, odd := range map[string]int{"cmaes": 0, autoAfresh: 1} {
		for i, trial := range a.known(arm, s).Trials {
			if trial.Number != 2*i || (trial == s.Trials[i]) != (i%2 == odd) || trial != s.Trials[i] && trial.State != suggest.Killed {
				t.Errorf("%s: trial %d is %v", arm, 2*i, *trial)
			}
		}
	}
}
