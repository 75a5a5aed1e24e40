package algorithm

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// What an algorithm prepares, the next question must not compute again, and its
// answer must be that of one that prepares nothing.
func TestShortTrialsArePreparedFor(t *testing.T) {
	for name, settings := range map[string]suggest.Settings{
		"mobster":   nil,
		"asha":      {{Name: "sampler", Value: bayesianName}},
		"hyperband": {{Name: "sampler", Value: bayesianName}},
	} {
		t.Run(name, func(t *testing.T) {
			space := unitCube(t, 2)
			build := func() (suggest.Algorithm, *bayesianOptimization) {
				r, _ := Get(name)
				a, err := r.New(space, settings)
				if err != nil {
					t.Fatal(err)
				}
				var f *fidelity
				switch inner := a.(*initial).Algorithm.(type) {
				case *asha:
					f = inner.fidelity
				case *hyperband:
					f = inner.fidelity
				}
				return a, f.sampler.(*bayesianOptimization)
			}
			a, model := build()
			s := suggest.Study{Space: space, Seed: 3, Objectives: []suggest.Objective{{Name: "loss"}}}
			prepared := 0
			for number := range 40 {
				before := fitsOf(model)
				a.(suggest.Preparer).Prepare(t.Context(), s)
				after := fitsOf(model)
				got, err := a.Suggest(t.Context(), s, 1)
				if err != nil {
					t.Fatal(err)
				}
				if fitsOf(model) != after {
					t.Fatalf("trial %d: the question fits what was prepared", number)
				}
				if after != before {
					prepared++
				}
				fresh, _ := build()
				want, _ := fresh.Suggest(t.Context(), s, 1)
				if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
					t.Fatalf("trial %d: %s", number, diff)
				}
				p := got[0]
				u, _ := space.Encode(p.Point)
				s.Trials = append(s.Trials, &suggest.Trial{
					Number: number, State: suggest.Succeeded, Point: p.Point, Meta: p.Meta, Resource: p.Resource,
					Values: []float64{bowlAt(0.4)(u)[0] + 1/p.Resource},
				})
			}
			if prepared == 0 {
				t.Error("nothing was ever prepared")
			}
		})
	}
}

// fitsOf says for which trials each role was fitted last.
func fitsOf(a *bayesianOptimization) string {
	numbers := map[string]int{}
	for role, fit := range a.cache.fits {
		numbers[role] = fit.number
	}
	return fmt.Sprint(numbers)
}
