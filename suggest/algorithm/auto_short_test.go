package algorithm_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/fidelity"
)

// resources counts trials by their resource.
func resources(trials []*suggest.Trial) map[float64]int {
	out := map[float64]int{}
	for _, t := range trials {
		out[t.Resource]++
	}
	return out
}

func autoWorld(t *testing.T, budget int) *world {
	w := newWorld(t, "auto", unit(), suggest.Setting{Name: "r_max", Value: "27"})
	w.study.Budget = budget
	w.end = func(t *suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, t.Point[0].Float() }
	return w
}

// How short the trials are is a matter of how many there are: at least three are whole.
func TestAutoShortensTrialsAsTheBudgetAllows(t *testing.T) {
	for budget, want := range map[int][]float64{8: {27}, 12: {9, 27}, 39: {3, 9, 27}, 120: {1, 3, 9, 27}} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			w := autoWorld(t, budget)
			w.play(budget, 1)
			got := resources(w.study.Trials)
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" || got[27] < 3 {
				t.Errorf("%d whole trials, resources -want +got:\n%s", got[27], diff)
			}
		})
	}
	for _, c := range []struct{ budget, parallel int }{{12, 12}, {40, 40}, {60, 30}, {40, 8}, {100, 16}} {
		w := autoWorld(t, c.budget)
		w.study.Parallel = c.parallel
		w.play(c.budget, c.parallel)
		if got := resources(w.study.Trials); got[27] < 3 {
			t.Errorf("%d trials, %d at a time, have the resources %v: fewer than 3 are whole", c.budget, c.parallel, got)
		}
	}
	w := autoWorld(t, 0)
	w.play(200, 4)
	if got := resources(w.study.Trials); got[1] < 100 || got[27] < 3 {
		t.Errorf("a budget that is not known has trials of %v", got)
	}
}

// What is said to be enough is the first budget that is.
func TestAutoHasShortTrialsFromABudgetOn(t *testing.T) {
	for _, parallel := range []int{1, 2, 8} {
		w := autoWorld(t, 0)
		least := fidelity.ShortFrom(w.study.Space, suggest.Settings{{Name: "r_max", Value: "27"}}, parallel)
		for budget, want := range map[int]float64{least - 1: 27, least: 9} {
			w := autoWorld(t, budget)
			w.study.Parallel = parallel
			if w.play(1, 1); w.study.Trials[0].Resource != want {
				t.Errorf("%d trials, %d at a time: the first has %v, want %v", budget, parallel, w.study.Trials[0].Resource, want)
			}
		}
	}
}

// A budget that is changed later does not change the rungs, whose results would not be
// comparable.
func TestAutoKeepsItsRungs(t *testing.T) {
	w := autoWorld(t, 12)
	w.play(6, 1)
	w.study.Budget = 200
	w.play(60, 1)
	if got := resources(w.study.Trials); got[9]+got[27] != 60 {
		t.Errorf("trials by resource: %v, want 9 and 27 only", got)
	}
}

// One of the last trials goes on with the next point in line, which is no longer the best in
// three; not more of them, which would be whole trainings of points that are known as bad.
func TestAutoEndsWithTheNextInLine(t *testing.T) {
	w := autoWorld(t, 39)
	w.play(39, 1)
	late := 0
	for _, trial := range w.study.Trials[35:] {
		parent, err := strconv.Atoi(trial.Meta[suggest.MetaParent])
		if err != nil {
			continue
		}
		before, better := 0, 0
		for _, other := range w.study.Trials[:trial.Number] {
			if other.Resource == w.study.Trial(parent).Resource {
				if before++; other.Values[0] < w.study.Trial(parent).Values[0] {
					better++
				}
			}
		}
		if better >= before/3+1 {
			t.Errorf("trial %d goes on with trial %d, which %d of %d are better than", trial.Number, parent, better, before)
		}
		if better >= before/3 {
			late++
		}
	}
	if late == 0 {
		t.Error("none of the last trials goes on with the next in line")
	}
}

// A setting that is not known is named together with those there are.
func TestAutoNamesItsSettings(t *testing.T) {
	r, _ := algorithm.Get("auto")
	space, err := suggest.NewSpace(unit())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"resource_nam", "sampler"} {
		_, err := r.New(space, suggest.Settings{{Name: name, Value: "x"}})
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "resource_name") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAutoSaysWhyTrialsAreShort(t *testing.T) {
	for budget, want := range map[int]string{40: "of resource 3, 9 and 27", 8: "too few for short ones: 12 are enough"} {
		w := autoWorld(t, budget)
		got, err := w.algorithm.Suggest(t.Context(), w.study, 1)
		if err != nil || len(got) != 1 || !strings.Contains(got[0].Why, want) {
			t.Errorf("of %d trials: %v, %v; want why with %q", budget, got, err, want)
		}
	}
}
