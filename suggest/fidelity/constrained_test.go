package fidelity_test

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/fidelity"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// A constraint may be on the resource: a point that is promoted must hold it too.
func TestPromotedPointsHoldTheConstraints(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{suggest.Integer("epochs", 1, 27), suggest.Float("cost", 1, 100)})
	if err != nil {
		t.Fatal(err)
	}
	if space, err = space.WithConstraints([]string{"epochs * cost <= 900"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []propose.Registration{fidelity.ASHA(), fidelity.BOHB(), fidelity.DEHB(), fidelity.Hyperband(), fidelity.MOBSTER(), fidelity.PASHA()} {
		a, err := r.New(space, suggest.Settings{{Name: "resource_name", Value: "epochs"}})
		if err != nil {
			t.Fatal(err)
		}
		s := suggest.Study{Space: space, Seed: 1, Objectives: []suggest.Objective{{Name: "loss"}}}
		again := map[string]int{}
		for len(s.Trials) < 80 {
			got, err := a.Suggest(t.Context(), s, 1)
			if err != nil {
				t.Fatal(err)
			}
			p := got[0]
			if !space.Contains(p.Point) {
				key := space.Assignments(p.Point)[0].Value + " " + space.Assignments(p.Point)[1].Value
				again[key]++
			}
			s.Put(&suggest.Trial{
				Number: s.NextNumber(), Point: p.Point, Meta: p.Meta, Resource: p.Resource,
				State: suggest.Succeeded, Values: []float64{-p.Point[1].Float()},
			})
		}
		for key, n := range again {
			t.Errorf("%s: epochs and cost %s violate the constraint, and are tried %d times", r.Name, key, n)
		}
	}
}
