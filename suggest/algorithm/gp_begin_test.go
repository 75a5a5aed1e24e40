package algorithm_test

import (
	"math"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

// Numbers of the first trial are in the middle of their distributions, whatever
// the seed; categories differ. A user's own point comes in its place.
func TestTheFirstTrialIsInTheMiddle(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "-3", Max: "5"},
		{Name: "rate", Kind: suggest.Double, Min: "0.0001", Max: "1", Distribution: suggest.LogUniform},
		{Name: "layers", Kind: suggest.Int, Min: "1", Max: "9"},
		{Name: "model", Kind: suggest.Categorical, List: []string{"a", "b", "c"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bayesianoptimization", "auto"} {
		models := map[string]bool{}
		for seed := range uint64(8) {
			s := suggest.Study{Space: space, Seed: seed, Objectives: objectives(1, "")}
			got, err := newAlgorithm(t, name, space).Suggest(t.Context(), s, 2)
			if err != nil || len(got) != 2 {
				t.Fatalf("%s: %v, %v", name, got, err)
			}
			first, second := space.Assignments(got[0].Point), space.Assignments(got[1].Point)
			if first[0].Value != "1" || math.Abs(got[0].Point[1].Float()-0.01) > 1e-12 || first[2].Value != "5" {
				t.Errorf("%s, seed %d: the first trial is %v", name, seed, first)
			}
			if second[0] == first[0] || second[1] == first[1] {
				t.Errorf("%s, seed %d: the second trial is %v", name, seed, second)
			}
			models[first[3].Value] = true

			s.Initial = []suggest.Point{got[1].Point}
			own, err := newAlgorithm(t, name, space).Suggest(t.Context(), s, 1)
			if err != nil || len(own) != 1 || !own[0].Point.Equal(got[1].Point) {
				t.Errorf("%s, seed %d: %v in place of the user's point, %v", name, seed, own, err)
			}
		}
		if len(models) != 3 {
			t.Errorf("%s: the first trials have the categories %v", name, models)
		}
	}
}

// A trial that is not in the middle does not say so.
func TestTheFirstTrialSaysWhereItIs(t *testing.T) {
	number := suggest.ParameterSpec{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}
	word := suggest.ParameterSpec{Name: "model", Kind: suggest.Categorical, List: []string{"a", "b", "c"}}
	for name, c := range map[string]struct {
		specs       []suggest.ParameterSpec
		constraints []string
		middle      bool
	}{
		"numbers":                 {[]suggest.ParameterSpec{number, word}, nil, true},
		"words only":              {[]suggest.ParameterSpec{word}, nil, false},
		"the middle is forbidden": {[]suggest.ParameterSpec{number}, []string{"x < 0.4"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			space, err := suggest.NewSpace(c.specs)
			if err != nil {
				t.Fatal(err)
			}
			if space, err = space.WithConstraints(c.constraints); err != nil {
				t.Fatal(err)
			}
			got, err := newAlgorithm(t, "bayesianoptimization", space).Suggest(t.Context(), suggest.Study{Space: space, Objectives: objectives(1, "")}, 1)
			if err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
			if strings.Contains(got[0].Why, "middle") != c.middle {
				t.Errorf("%v is proposed because: %s", space.Assignments(got[0].Point), got[0].Why)
			}
		})
	}
}
