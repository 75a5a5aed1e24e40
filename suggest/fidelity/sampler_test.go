package fidelity_test

import (
	"errors"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/fidelity"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// A sampler that learns likes some points more than others: the search must not end while
// there are points that it likes less.
func TestEachPointOfASmallSpaceIsTriedWhateverDrawsIt(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{suggest.Integer("units", 1, 20), suggest.Integer("epochs", 1, 81)})
	if err != nil {
		t.Fatal(err)
	}
	for _, sampler := range []string{"random", "sobol", "tpe", "multivariate-tpe", "bayesianoptimization"} {
		a, err := fidelity.ASHA().New(space, suggest.Settings{{Name: "resource_name", Value: "epochs"}, {Name: "sampler", Value: sampler}})
		if err != nil {
			t.Fatal(err)
		}
		s := suggest.Study{Space: space, Seed: 1, Objectives: []suggest.Objective{{Name: "loss"}}}
		seen := map[string]bool{}
		for {
			got, err := a.Suggest(t.Context(), s, 1)
			if errors.Is(err, suggest.ErrExhausted) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			p := got[0]
			seen[p.Point[0].String()] = true
			s.Put(&suggest.Trial{
				Number: s.NextNumber(), Point: p.Point, Meta: p.Meta, Resource: p.Resource,
				State: suggest.Succeeded, Values: []float64{p.Point[0].Float()},
			})
		}
		if len(seen) < 20 {
			t.Errorf("%s: the search ended after %d of 20 points", sampler, len(seen))
		}
	}
}

// The branch of a conditional space that a model likes may have few points, and another one
// have no end of them.
func TestTheSearchGoesOnWhereABranchIsUsedUp(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		suggest.Choice("model", "tree", "net"), suggest.Choice("depth", "1", "2", "3"),
		{Name: "rate", Kind: suggest.Double, Min: "0", Max: "1", When: &suggest.When{Parameter: "model", In: []string{"net"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []propose.Registration{fidelity.BOHB(), fidelity.MOBSTER(), fidelity.Hyperband()} {
		for seed := range uint64(5) {
			a, err := r.New(space, suggest.Settings{{Name: "r_max", Value: "9"}})
			if err != nil {
				t.Fatal(err)
			}
			s := suggest.Study{Space: space, Seed: seed, Objectives: []suggest.Objective{{Name: "loss"}}}
			for len(s.Trials) < 60 {
				got, err := a.Suggest(t.Context(), s, 1)
				if err != nil {
					t.Errorf("%s, seed %d, after %d trials: %v", r.Name, seed, len(s.Trials), err)
					break
				}
				p := got[0]
				loss := 0.0
				if p.Point[0].String() == "net" {
					loss = 1 + p.Point[2].Float()
				}
				s.Put(&suggest.Trial{
					Number: s.NextNumber(), Point: p.Point, Meta: p.Meta, Resource: p.Resource,
					State: suggest.Succeeded, Values: []float64{loss},
				})
			}
		}
	}
}
