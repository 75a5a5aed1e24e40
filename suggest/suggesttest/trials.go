package suggesttest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// oddTrialsAreTolerated gives the algorithm a history of what should not be
// there.
func oddTrialsAreTolerated(t *testing.T, r algorithm.Registration) {
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
	once := history(t, a, space, 2, 30)
	fresh := func() suggest.Study {
		s := once
		s.Trials = slices.Clone(once.Trials)
		return s
	}
	valued := func(values ...float64) suggest.Study {
		s := fresh()
		for i := range s.Trials {
			s.Trials[i].State, s.Trials[i].Values = suggest.Succeeded, values
		}
		return s
	}
	stated := func(state suggest.State) suggest.Study {
		s := fresh()
		for i := range s.Trials {
			s.Trials[i].State, s.Trials[i].Values = state, nil
		}
		return s
	}
	pointed := func(p suggest.Point) suggest.Study {
		s := fresh()
		for i := range s.Trials {
			s.Trials[i].Point = p
		}
		return s
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
	mixture := fresh()
	for i := range mixture.Trials {
		if i%3 == 0 {
			mixture.Trials[i].Values = []float64{[]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[i/3%3]}
			mixture.Trials[i].State = suggest.Succeeded
		}
	}
	studies["some values are not finite"] = mixture
	studies["numbers have gaps"] = withGaps(fresh())
	return studies
}

func withGaps(s suggest.Study) suggest.Study {
	for i := range s.Trials {
		s.Trials[i].Number *= 1_000_003
	}
	return s
}

// noDuplicates goes through finite spaces, at several parallelisms, with trials
// that fail, to their end.
func noDuplicates(t *testing.T, r algorithm.Registration) {
	if r.Repeats {
		t.Skip("it proposes points again on purpose")
	}
	for _, name := range []string{"one int", "one choice", "min equals max", "all one value", "small", "small tree"} {
		for _, parallel := range []int{1, 3, 1000} {
			t.Run(fmt.Sprintf("%s, %d at a time", name, parallel), func(t *testing.T) {
				a, space := build(t, r, spaces()[name])
				size, _ := space.Size()
				p := Player{Algorithm: a, Study: newStudy(space, 8), Parallel: parallel, Objective: bowl(space)}
				// A trial of the user's own: its point is not proposed again.
				first := suggest.Trial{Number: 0, Point: space.Decode(make([]float64, space.Len())), State: suggest.Killed}
				p.Study.Trials = append(p.Study.Trials, first)
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
