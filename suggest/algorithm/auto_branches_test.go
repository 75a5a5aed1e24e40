package algorithm

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// oneOfThree is a choice of models. The forest is easy to tune and second best; the network
// is best, in a small part of its range.
func oneOfThree(t *testing.T, constraints ...string) suggest.Space {
	t.Helper()
	number := func(name, model string) suggest.ParameterSpec {
		return suggest.ParameterSpec{Name: name, Kind: suggest.Double, Min: "0", Max: "1", When: &suggest.When{Parameter: "model", In: []string{model}}}
	}
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "model", Kind: suggest.Categorical, List: []string{"forest", "network", "linear"}},
		number("depth", "forest"), number("features", "forest"),
		number("lr", "network"), number("width", "network"), number("dropout", "network"),
		number("l2", "linear"),
	})
	if err == nil {
		space, err = space.WithConstraints(constraints)
	}
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func lossOfThree(p suggest.Point) float64 {
	from := func(i int, best float64) float64 { return math.Pow(p[i].Float()-best, 2) }
	switch p[0].String() {
	case "forest":
		return 0.1 + 0.05*from(1, 0.6) + 0.05*from(2, 0.3)
	case "network":
		return 0.3 - 0.25*math.Exp(-from(3, 0.8)/0.01) + 0.3*from(4, 0.2) + 0.3*from(5, 0.3)
	}
	return 0.2 + 0.5*from(6, 0.5)
}

// searched is a study after so many trials, asked for so many at a time.
func searched(t *testing.T, space suggest.Space, seed uint64, trials, at int) suggest.Study {
	t.Helper()
	return searchedFailing(t, space, seed, trials, at, "")
}

// searchedFailing is searched where the trials of a model fail.
func searchedFailing(t *testing.T, space suggest.Space, seed uint64, trials, at int, fails string) suggest.Study {
	t.Helper()
	a, err := newAuto(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := suggest.Study{Space: space, Seed: seed, Budget: trials, Parallel: at, Objectives: []suggest.Objective{{Name: "loss"}}}
	for len(s.Trials) < trials {
		got, err := a.Suggest(context.Background(), s, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range suggest.PendingTrials(s.NextNumber(), got) {
			trial.State = suggest.Failed
			if trial.Point[0].String() != fails {
				trial.State, trial.Values = suggest.Succeeded, []float64{lossOfThree(trial.Point)}
			}
			s.Put(trial)
		}
	}
	return s
}

// A model that is easy to tune does not keep the search from one that is better.
func TestAutoFindsTheBestBranch(t *testing.T) {
	for name, c := range map[string]struct{ trials, at int }{"one at a time": {96, 1}, "in batches": {160, 8}} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for seed := range uint64(8) {
				s := searched(t, oneOfThree(t), seed, c.trials, c.at)
				best := slices.MinFunc(s.Trials, func(x, y *suggest.Trial) int { return int(math.Copysign(1, x.Values[0]-y.Values[0])) })
				if best.Point[0].String() == "network" {
					found++
				}
			}
			if found < 6 { // without branches 1 of 10 searches finds it
				t.Errorf("the best model was found in %d of 8 searches", found)
			}
		})
	}
}

// Each branch has the trials that it is due, and in a batch no more than that.
func TestAutoStarvesNoBranch(t *testing.T) {
	built, err := newAuto(oneOfThree(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := built.(*automatic)
	s := suggest.Study{Space: a.space, Seed: 1, Budget: 200, Parallel: 8, Objectives: []suggest.Objective{{Name: "loss"}}}
	for number := range 64 {
		p := a.space.Decode([]float64{0, 0.5, float64(number) / 64, 0, 0, 0, 0})
		if number%16 == 1 {
			p = a.space.Decode([]float64{0.99, 0, 0, 0, 0, 0, float64(number) / 64})
		}
		s.Put(&suggest.Trial{Number: number, Point: p, State: suggest.Succeeded, Values: []float64{lossOfThree(p)}})
	}
	got, err := a.Suggest(context.Background(), s, 32)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, proposal := range got {
		count[proposal.Point[0].String()]++
	}
	// Of 96 trials each is due 1.5*sqrt(96), which is 14.7.
	if count["network"] < 14 || count["linear"] < 10 || count["network"]+count["linear"] > 28 {
		t.Errorf("32 trials, where the network had none and the linear model four: %v", count)
	}
}

// Branches are the values of a choice whose parameters are most of what a point has there.
func TestBranches(t *testing.T) {
	number := func(name string, when *suggest.When) suggest.ParameterSpec {
		return suggest.ParameterSpec{Name: name, Kind: suggest.Double, Min: "0", Max: "1", When: when}
	}
	of := func(parameter string, values ...string) *suggest.When {
		return &suggest.When{Parameter: parameter, In: values}
	}
	model := suggest.ParameterSpec{Name: "model", Kind: suggest.Categorical, List: []string{"a", "b"}}
	for name, c := range map[string]struct {
		parameters []suggest.ParameterSpec
		want       []string
	}{
		"two models":                {[]suggest.ParameterSpec{model, number("x", of("model", "a")), number("y", of("model", "b"))}, []string{"a", "b"}},
		"one has parameters":        {[]suggest.ParameterSpec{model, number("x", of("model", "a"))}, []string{"a"}},
		"an option of one model":    {[]suggest.ParameterSpec{model, number("x", of("model", "a")), number("y", nil), number("z", nil)}, nil},
		"as many own as shared":     {[]suggest.ParameterSpec{model, number("x", of("model", "a")), number("y", nil)}, []string{"a"}},
		"no conditions":             {[]suggest.ParameterSpec{model, number("x", nil)}, nil},
		"few points":                {[]suggest.ParameterSpec{model, {Name: "n", Kind: suggest.Int, Min: "1", Max: "8", When: of("model", "a")}}, nil},
		"parameters below another":  {[]suggest.ParameterSpec{model, {Name: "kernel", Kind: suggest.Categorical, List: []string{"rbf", "none"}, When: of("model", "a")}, number("gamma", of("kernel", "rbf"))}, []string{"a"}},
		"a parameter of all values": {[]suggest.ParameterSpec{model, number("x", of("model", "a", "b"))}, nil},
		"a number with many values": {[]suggest.ParameterSpec{{Name: "n", Kind: suggest.Int, Min: "1", Max: "100"}, number("x", of("n", "1"))}, nil},
	} {
		space, err := suggest.NewSpace(c.parameters)
		if err != nil {
			t.Fatal(err)
		}
		branches, err := newBranches(space, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range branches {
			got = append(got, space.At(b.parameter).At(b.value).String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A branch that constraints leave empty, or where each trial fails, does not keep the models
// from the others.
func TestAutoGoesOnWithoutABranch(t *testing.T) {
	for name, c := range map[string]struct {
		constraints []string
		fails       string
		most        int
	}{
		"constraints leave it empty":     {[]string{"model != 'network'"}, "", 0},
		"constraints leave a few points": {[]string{"lr == 0.5 and width == 0.5"}, "", 8},
		"all of its trials fail":         {nil, "network", 12},
	} {
		t.Run(name, func(t *testing.T) {
			s := searchedFailing(t, oneOfThree(t, c.constraints...), 1, 64, 1, c.fails)
			arms, network := map[string]int{}, 0
			for _, trial := range s.Trials {
				arms[trial.Meta[autoMeta]]++
				if trial.Point[0].String() == "network" {
					network++
				}
			}
			if network > c.most || arms[autoForest] < 8 {
				t.Errorf("%d trials of the branch, want at most %d; by model %v", network, c.most, arms)
			}
		})
	}
}
