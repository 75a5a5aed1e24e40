package algorithm_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Li et al., Hyperband (JMLR 18, 2018), table 1: R = 81, eta = 3.
func TestHyperbandTable(t *testing.T) {
	want := map[string]int{
		"bracket 0: 1": 81, "bracket 0: 3": 27, "bracket 0: 9": 9, "bracket 0: 27": 3, "bracket 0: 81": 1,
		"bracket 1: 3": 34, "bracket 1: 9": 11, "bracket 1: 27": 3, "bracket 1: 81": 1,
		"bracket 2: 9": 15, "bracket 2: 27": 5, "bracket 2: 81": 1,
		"bracket 3: 27": 8, "bracket 3: 81": 2,
		"bracket 4: 81": 5,
	}
	w := newWorld(t, "hyperband", unit())
	w.play(206, 1)
	if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With 30 trials Hyperband's first two brackets, of 121 and 49, would not come to
// their end; the third, of 21, does, and so does the last kind, of 5.
func TestHyperbandKeepsToTheBudget(t *testing.T) {
	for _, name := range []string{"hyperband", "dehb"} {
		want := map[string]int{"bracket 2: 9": 15, "bracket 2: 27": 5, "bracket 2: 81": 1, "bracket 4: 81": 5, "bracket 9: 81": 4}
		w := newWorld(t, name, unit())
		w.study.Budget = 30
		w.play(30, 1)
		if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSuccessiveHalvingTable(t *testing.T) {
	w := newWorld(t, "successive-halving", unit(), suggest.Setting{Name: "r_max", Value: "20"}, suggest.Setting{Name: "n_points", Value: "10"}, suggest.Setting{Name: "eta", Value: "2"})
	w.play(18+17, 1)
	want := map[string]int{ // the last rung of 2^4 <= 20 has all of it
		"bracket 0: 1": 10, "bracket 0: 2": 5, "bracket 0: 5": 2, "bracket 0: 10": 1,
		"bracket 1: 1": 10, "bracket 1: 2": 5, "bracket 1: 5": 2,
	}
	if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// In each rung of successive halving the best third goes on, and no other.
func TestTheBestGoOn(t *testing.T) {
	w := newWorld(t, "successive-halving", unit(), suggest.Setting{Name: "r_max", Value: "27"})
	w.play(80, 5)
	byRung := map[string][]float64{}
	for _, trial := range w.study.Trials {
		if trial.Meta["bracket"] == "0" {
			byRung[trial.Meta["rung"]] = append(byRung[trial.Meta["rung"]], trial.Point[0].Float())
		}
	}
	for rung := 1; rung <= 3; rung++ {
		below, here := byRung[strconv.Itoa(rung-1)], byRung[strconv.Itoa(rung)]
		slices.Sort(below)
		slices.Sort(here)
		if len(below) != 3*len(here) || !slices.Equal(below[:len(here)], here) {
			t.Errorf("rung %d has %v of %v", rung, here, below)
		}
	}
}

// A point that is among the best whatever the others bring need not wait.
func TestHyperbandPromotesWhatIsCertain(t *testing.T) {
	w := newWorld(t, "successive-halving", unit(), suggest.Setting{Name: "r_max", Value: "3"}, suggest.Setting{Name: "n_points", Value: "6"})
	w.ask(6)
	for i := range 5 {
		w.study.Update(i, func(t *suggest.Trial) { t.State, t.Values = suggest.Succeeded, []float64{float64(i)} })
	}
	w.running = nil
	w.ask(2)
	first, second := w.study.Trials[6], w.study.Trials[7]
	if first.Meta["parent"] != "0" || second.Meta["bracket"] != "1" {
		t.Errorf("got %v and %v, want the best one of bracket 0 and a new point of bracket 1", first.Meta, second.Meta)
	}
}

// The figures of Katib's example: 9 at once, as its controller demands, and a
// budget of one round of brackets. No later bracket takes the trials that one which
// waits for its rung still needs, in whatever order the trials end.
func TestHyperbandKeepsPlacesForPromotions(t *testing.T) {
	settings := []suggest.Setting{{Name: "r_l", Value: "9"}, {Name: "eta", Value: "3"}, {Name: "resource_name", Value: "epochs"}}
	space := append(unit(), suggest.ParameterSpec{Name: "epochs", Kind: suggest.Int, Min: "1", Max: "9"})
	want := map[string]int{"bracket 0: 1": 9, "bracket 0: 3": 3, "bracket 0: 9": 1, "bracket 1: 3": 5, "bracket 1: 9": 1, "bracket 2: 9": 3}
	for seed := range uint64(20) {
		w := newWorld(t, "hyperband", space, settings...)
		w.stream = rng.New(seed, "world", 0, "order")
		w.study.Budget = 22
		for len(w.study.Trials) < 22 || len(w.running) > 0 {
			w.ask(min(9-len(w.running), 22-len(w.study.Trials)))
			w.finish()
		}
		if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
			t.Errorf("order %d (-want +got):\n%s", seed, diff)
		}
	}
}

// What is kept for promotions that can no longer come, since too many trials failed,
// is spent all the same.
func TestHyperbandSpendsItsBudgetWhenTrialsFail(t *testing.T) {
	for _, name := range []string{"hyperband", "dehb", "bohb", "successive-halving"} {
		for seed := range uint64(10) {
			w := newWorld(t, name, unit(), suggest.Setting{Name: "r_l", Value: "9"})
			w.stream = rng.New(seed, "world", 0, "order")
			w.study.Budget = 22
			w.end = func(t *suggest.Trial) (suggest.State, float64) {
				if t.Number%3 != 1 {
					return suggest.Failed, 0
				}
				return suggest.Succeeded, t.Point[0].Float()
			}
			for len(w.study.Trials) < 22 {
				if w.ask(min(9-len(w.running), 22-len(w.study.Trials))); len(w.running) == 0 {
					t.Fatalf("%s stops after %d of 22 trials", name, len(w.study.Trials))
				}
				w.finish()
			}
		}
	}
}
