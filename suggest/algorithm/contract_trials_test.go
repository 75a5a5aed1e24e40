package algorithm_test

import (
	"errors"
	"fmt"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// oddTrialsAreTolerated gives the algorithm a history of what should not be
// there.
func oddTrialsAreTolerated(t *testing.T, r propose.Registration) {
	for _, name := range spaceNames() {
		t.Run(name, func(t *testing.T) {
			a, space := build(t, r, spaces()[name])
			for what, s := range oddStudies(t, a, space) {
				got, err := a.Suggest(t.Context(), s, 3)
				if err != nil && !errors.Is(err, suggest.ErrExhausted) {
					t.Errorf("%s: %v", what, err)
				}
				for _, p := range got {
					if !space.Contains(p.Point) {
						t.Errorf("%s: %v is not in the space", what, p.Point)
					}
				}
			}
		})
	}
}

func oddStudies(t *testing.T, a suggest.Algorithm, space suggest.Space) map[string]suggest.Study {
	once := studyOf(t, a, space, 2, 30)
	valued := func(values ...float64) suggest.Study {
		return suggesttest.Edited(once, func(_ int, t *suggest.Trial) { t.State, t.Values = suggest.Succeeded, values })
	}
	stated := func(state suggest.State) suggest.Study {
		return suggesttest.Edited(once, func(_ int, t *suggest.Trial) { t.State, t.Values = state, nil })
	}
	pointed := func(p suggest.Point) suggest.Study {
		return suggesttest.Edited(once, func(_ int, t *suggest.Trial) { t.Point = p })
	}
	foreign, _ := space.Parse([]suggest.Assignment{{Name: space.At(0).Name(), Value: "1e300"}, {Name: "other", Value: "x"}})
	studies := map[string]suggest.Study{
		"all values are NaN":             valued(math.NaN()),
		"all values are +Inf":            valued(math.Inf(1)),
		"all values are -Inf":            valued(math.Inf(-1)),
		"all values are equal":           valued(1),
		"all values are huge":            valued(math.MaxFloat64),
		"values are missing":             valued(),
		"more values than objectives":    valued(1, 2, 3),
		"points are nil":                 pointed(nil),
		"points are too long":            pointed(make(suggest.Point, space.Len()+3)),
		"points are unset":               pointed(make(suggest.Point, space.Len())),
		"points are out of the space":    pointed(foreign),
		"all points are the same":        pointed(space.Decode(make([]float64, space.Len()))),
		"no objective":                   {Space: space},
		"a state from the future":        stated(99),
		"a budget that is spent already": {Space: space, Budget: -1},
	}
	for state := suggest.Pending; state <= suggest.Killed; state++ {
		studies[fmt.Sprintf("all trials are %v", state)] = stated(state)
	}
	studies["some values are not finite"] = suggesttest.Edited(once, func(i int, t *suggest.Trial) {
		if i%3 == 0 {
			t.State, t.Values = suggest.Succeeded, []float64{[]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[i/3%3]}
		}
	})
	studies["numbers have gaps"] = suggesttest.Edited(once, func(i int, t *suggest.Trial) { t.Number *= 1_000_003 })
	return studies
}

// noDuplicates goes through finite spaces, at several parallelisms, with trials
// that fail, to their end.
func noDuplicates(t *testing.T, r propose.Registration) {
	if r.Repeats {
		t.Skip("it proposes points again on purpose")
	}
	for _, name := range []string{"one int", "one choice", "min equals max", "all one value", "small", "small tree"} {
		for _, parallel := range []int{1, 3, 1000} {
			t.Run(fmt.Sprintf("%s, %d at a time", name, parallel), func(t *testing.T) {
				a, space := build(t, r, spaces()[name])
				size, _ := space.Size()
				p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 8), Parallel: parallel, Objective: bowl(space)}
				// A trial of the user's own: its point is not proposed again.
				p.Study.Put(&suggest.Trial{Number: 0, Point: space.Decode(make([]float64, space.Len())), State: suggest.Killed})
				trials := int(size) + 5
				if r.MultiFidelity {
					trials *= 8 // a point comes again with more of the resource
				}
				err := p.Play(t.Context(), trials)
				seen, spent := map[string]bool{}, map[string]bool{}
				for i, trial := range p.Study.Trials {
					key, _ := space.Key(trial.Point)
					again := fmt.Sprint(key, trial.Resource)
					if spent[again] && (r.Exhaustive || len(seen) < int(size)) {
						t.Errorf("trial %d: %v came before", i, space.Assignments(trial.Point))
					}
					seen[key], spent[again] = true, true
				}
				if len(seen) != int(size) {
					t.Errorf("%d of %d points were proposed", len(seen), size)
				}
				if r.Exhaustive && !errors.Is(err, suggest.ErrExhausted) {
					t.Errorf("at the end: %v, want %v", err, suggest.ErrExhausted)
				}
			})
		}
	}
}
