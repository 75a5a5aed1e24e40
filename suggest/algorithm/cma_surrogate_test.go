package algorithm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

var withSurrogate = suggest.Setting{Name: "surrogate", Value: "true"}

// valley is Rosenbrock's function in [0, 1], with the optimum at 0.7.
func valley(_ int, p suggest.Point) float64 {
	sum := 0.0
	for i := range len(p) - 1 {
		x, y := 3*p[i].Float()-1.1, 3*p[i+1].Float()-1.1
		sum += 100*(y-x*x)*(y-x*x) + (1-x)*(1-x)
	}
	return sum
}

// bestAfter is the median over seeds of the best loss.
func bestAfter(t *testing.T, trials int, objective func(int, suggest.Point) float64, settings ...suggest.Setting) float64 {
	t.Helper()
	space := doubles(t, "a", "b", "c", "d")
	var all []float64
	for seed := range uint64(5) {
		p := suggesttest.Player{
			Algorithm: newAlgorithm(t, "cmaes", space, settings...), Objective: objective, Parallel: 4,
			Study: suggest.Study{Space: space, Seed: seed, Objectives: objectives(1, "")},
		}
		if err := p.Play(t.Context(), trials); err != nil {
			t.Fatal(err)
		}
		all = append(all, bestOf(p.Study.Trials))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func TestSurrogateSavesTrials(t *testing.T) {
	for name, objective := range map[string]func(int, suggest.Point) float64{"bowl": squares(0.3), "valley": valley} {
		plain, guided := bestAfter(t, 300, objective), bestAfter(t, 200, objective, withSurrogate)
		if !(guided < plain) {
			t.Errorf("%s: %v after 200 trials with a surrogate, %v after 300 without", name, guided, plain)
		}
	}
}

// A surrogate picks among the samples that would be drawn anyway, so that what
// it picks is learned from as a sample, and says that it did.
func TestSurrogatePicksASample(t *testing.T) {
	space := doubles(t, "a", "b", "c")
	study := suggest.Study{Space: space, Seed: 3, Objectives: objectives(1, "")}
	p := suggesttest.Player{Algorithm: newAlgorithm(t, "cmaes", space, withSurrogate), Study: study, Objective: squares(0.3)}
	if err := p.Play(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	got, err := newAlgorithm(t, "cmaes", space, withSurrogate).Suggest(t.Context(), p.Study, 1)
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if !strings.Contains(got[0].Why, "the most promising of 24") {
		t.Errorf("it does not say that it was picked: %s", got[0].Why)
	}
	plain, err := newAlgorithm(t, "cmaes", space).Suggest(t.Context(), p.Study, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain[0].Meta, got[0].Meta); diff != "" {
		t.Errorf("it belongs to another generation (-plain +picked):\n%s", diff)
	}
}

// Where a surrogate cannot help, nothing changes: with choices, and with
// constraints on what is measured.
func TestSurrogateKeepsOut(t *testing.T) {
	mixed, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "c", Kind: suggest.Categorical, List: []string{"a", "b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]suggest.Study{
		"choices":     {Space: mixed, Objectives: objectives(1, "")},
		"constraints": {Space: doubles(t, "x", "y"), Objectives: objectives(1, ""), Constraints: []suggest.Constraint{{Name: "size"}}},
	} {
		var points [2][]suggest.Point
		for k, settings := range [][]suggest.Setting{nil, {withSurrogate}} {
			a, study := newAlgorithm(t, "cmaes", s.Space, settings...), s
			for i := range 60 {
				got, err := a.Suggest(t.Context(), study, 1)
				if err != nil || len(got) != 1 {
					t.Fatalf("%s: %v, %v", name, got, err)
				}
				points[k] = append(points[k], got[0].Point)
				x := got[0].Point[0].Float()
				study.Trials = append(study.Trials, &suggest.Trial{Number: i, Point: got[0].Point, Meta: got[0].Meta, State: suggest.Succeeded, Values: []float64{x * x}, Constraints: []float64{0.2 - x}})
			}
		}
		if diff := cmp.Diff(points[0], points[1], cmp.Comparer(suggest.Value.Equal)); diff != "" {
			t.Errorf("%s: a surrogate changes the points (-without +with):\n%s", name, diff)
		}
	}
}

// A region that crashes teaches as well: the surrogate does not lead into it
// again and again.
func TestSurrogateLeavesWhatCrashes(t *testing.T) {
	space := doubles(t, "a", "b", "c")
	study := suggest.Study{Space: space, Seed: 1, Objectives: objectives(1, "")}
	a := newAlgorithm(t, "cmaes", space, withSurrogate)
	crashed, late := 0, 0
	for i := range 300 {
		got, err := a.Suggest(t.Context(), study, 1)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		trial := &suggest.Trial{Number: i, Point: got[0].Point, Meta: got[0].Meta, State: suggest.Succeeded, Values: []float64{squares(0.3)(i, got[0].Point)}}
		if got[0].Point[0].Float() < 0.35 { // the optimum is on the other side
			trial.State, trial.Values = suggest.Failed, nil
			if crashed++; i >= 200 {
				late++
			}
		}
		study.Trials = append(study.Trials, trial)
	}
	if best := bestOf(slices.DeleteFunc(slices.Clone(study.Trials), func(t *suggest.Trial) bool { return len(t.Values) == 0 })); best > 0.0026 { // at the edge it is 0.0025
		t.Errorf("the best is %v with %d crashes, want at most 0.0026", best, crashed)
	}
	if late > 60 {
		t.Errorf("%d of the last 100 trials crashed", late)
	}
}
