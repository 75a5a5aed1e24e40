package algorithm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// The models for few results share the early trials. Where the study is not one for
// forests, others take their place. One whose trials are better than the others' has more.
func TestAutoSharesTheEarlyTrials(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "solver", Kind: suggest.Categorical, List: []string{"adam", "sgd"}},
		{Name: "momentum", Kind: suggest.Double, Min: "0", Max: "1", When: &suggest.When{Parameter: "solver", In: []string{"sgd"}}},
		{Name: "lr", Kind: suggest.Double, Min: "0", Max: "1"},
		{Name: "batch", Kind: suggest.Int, Min: "1", Max: "64"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		space suggest.Space
		now   situation
		want  map[string]int
	}{
		"conditions":              {space, situation{forest: true}, map[string]int{bayes.Name: 25, autoForest: 50, "tpe": 25}},
		"conditions, no forest":   {space, situation{}, map[string]int{bayes.Name: 33, "tpe": 67}},
		"conditions, stopped":     {space, situation{stopped: true}, map[string]int{"tpe": 100}},
		"no conditions":           {threeNumbers(t), situation{forest: true}, map[string]int{bayes.Name: 50, autoForest: 25, "tpe": 25}},
		"neither":                 {threeNumbers(t), situation{}, map[string]int{bayes.Name: 100}},
		"the forest is better":    {threeNumbers(t), situation{forest: true, ranks: map[string]float64{bayes.Name: 0.5, autoForest: 0.2, "tpe": 0.5}}, map[string]int{bayes.Name: 14, autoForest: 79, "tpe": 7}},
		"Parzen are worst of all": {space, situation{forest: true, ranks: map[string]float64{bayes.Name: 0.2, autoForest: 0.2, "tpe": 0.9}}, map[string]int{bayes.Name: 33, autoForest: 67}},
	} {
		built, err := newAuto(c.space, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}, Budget: 200, Parallel: modelsTogether}
		got := map[string]int{}
		for number := range 100 {
			c.now.finished = number
			got[built.(*automatic).pick(s, number, c.now).arm]++
		}
		near := cmp.Comparer(func(a, b int) bool { return max(a, b)-min(a, b) <= 2 }) // of a sequence that is spread evenly
		if diff := cmp.Diff(c.want, got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// With a handful of results the process has all trials that a forest could have, unless
// many run at once. The models share those that follow.
func TestAutoBeginsWithTheProcess(t *testing.T) {
	built, err := newAuto(threeNumbers(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	for parallel, want := range map[int]bool{0: true, 1: true, modelsTogether - 1: true, modelsTogether: false, 64: false} {
		s := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}, Budget: 200, Parallel: parallel}
		alone := func(from, to int) bool {
			for number := from; number < to; number++ {
				if built.(*automatic).pick(s, number, situation{finished: number, forest: true}).arm != bayes.Name {
					return false
				}
			}
			return true
		}
		if got := alone(0, modelsShared); got != want {
			t.Errorf("%d at once: the process has the first trials alone: %v, want %v", parallel, got, want)
		}
		if alone(modelsShared, 2*modelsShared) {
			t.Errorf("%d at once: the process has the trials from %d on alone", parallel, modelsShared)
		}
	}
}

// A rule that stops trials leaves curves that forests cannot read.
func TestAutoSeesThatTrialsAreStopped(t *testing.T) {
	curve := []suggest.Sample{{Step: 1, Value: 3}, {Step: 2, Value: 2}, {Step: 3, Value: 1}}
	for name, c := range map[string]struct {
		state suggest.State
		warm  bool
		want  situation
	}{
		"a trial was stopped":       {suggest.Pruned, false, situation{stopped: true}},
		"none was":                  {suggest.Succeeded, false, situation{forest: true}},
		"there are earlier studies": {suggest.Succeeded, true, situation{}},
	} {
		s := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}, Trials: []*suggest.Trial{
			{Number: 0, State: suggest.Succeeded, Values: []float64{1}, Curve: curve},
			{Number: 1, State: c.state, Values: []float64{2}, Curve: curve[:2]},
		}}
		if c.warm {
			s.Warm = []*suggest.Trial{{Number: 0, State: suggest.Succeeded, Values: []float64{1}}}
		}
		if got := situationOf(s); got.stopped != c.want.stopped || got.forest != c.want.forest {
			t.Errorf("%s: stopped %v, forest %v", name, got.stopped, got.forest)
		}
	}
}

// The models are ranked by all trials that have ended: the first ones, which are spread
// evenly, are no model's, and a failure is worst.
func TestModelsAreRankedByTheirTrials(t *testing.T) {
	s := suggest.Study{Objectives: []suggest.Objective{{Name: "accuracy", Direction: suggest.Maximize}}}
	s.Constraints = []suggest.Constraint{{Name: "size"}}
	put := func(number int, arm string, state suggest.State, values ...float64) {
		s.Put(&suggest.Trial{Number: number, State: state, Values: values, Constraints: []float64{0}, Meta: suggest.Meta{autoMeta: arm}})
	}
	for i := range modelsFrom {
		put(i, "tpe", suggest.Succeeded, float64(i))
	}
	for i := range 4 {
		put(10+3*i, bayes.Name, suggest.Succeeded, 10)
		put(11+3*i, autoForest, suggest.Failed)
		put(12+3*i, "tpe", suggest.Running)
	}
	put(30, "tpe", suggest.Killed, 20) // says nothing, however good
	got := modelRanks(s)
	// The best four share the ranks 0 to 4 of 16, the failed ones 12 to 16; modelsTrust trials
	// have the mean of both, which Parzen estimators keep.
	want := map[string]float64{bayes.Name: (4*0.125 + 3*0.5) / 7, autoForest: (4*0.875 + 3*0.5) / 7, "tpe": 0.5}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.Put(&suggest.Trial{Number: 31, State: suggest.Succeeded, Values: []float64{99}, Constraints: []float64{1}, Meta: suggest.Meta{autoMeta: "tpe"}})
	if got := modelRanks(s)["tpe"]; got <= 0.5 {
		t.Errorf("with a trial that violates a constraint, the rank is %v, want more than 0.5", got)
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
