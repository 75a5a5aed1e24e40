package algorithm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// constraintsHold searches spaces of which constraints leave a half, and less than a
// millionth: weights of a mixture sum to at most 1.
func constraintsHold(t *testing.T, r propose.Registration) {
	const sum = "x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9"
	cases := map[string]struct {
		parameters int
		step       string
		constraint string
	}{
		"half":              {2, "", "x0 <= x1"},
		"half, with steps":  {2, "0.05", "x0 <= x1"},
		"one in 5040":       {7, "", "x0 < x1 < x2 < x3 < x4 < x5 < x6"},
		"a corner":          {2, "", "x0 + x1 <= 0.02"},
		"a line of steps":   {2, "0.01", "x0 + x1 == 0.9"},
		"weights":           {10, "", sum + " <= 1"},
		"weights, steps":    {10, "0.01", sum + " <= 1"},
		"weights, most":     {10, "", sum + " >= 9"},
		"weights, the last": {10, "", "x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + 0.1 * x9 <= 0.1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			specs := make([]suggest.ParameterSpec, c.parameters)
			for i := range specs {
				specs[i] = suggest.ParameterSpec{Name: fmt.Sprintf("x%d", i), Kind: suggest.Double, Min: "0", Max: "1", Step: c.step}
			}
			space, err := specSpace(t, specs).WithConstraints([]string{c.constraint})
			if err != nil {
				t.Fatal(err)
			}
			a, err := r.New(space, nil)
			if err != nil {
				t.Skipf("it refuses the space: %v", err)
			}
			constrained(t, r, a, space)
		})
	}
}

func constrained(t *testing.T, r propose.Registration, a suggest.Algorithm, space suggest.Space) {
	t.Helper()
	p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 4), Parallel: 5, Objective: bowl(space)}
	_ = p.Play(t.Context(), 30) // a few points may be all there are
	if _, finite := space.Size(); len(p.Study.Trials) < 30 && !finite || len(p.Study.Trials) < 4 {
		t.Errorf("%d trials", len(p.Study.Trials))
	}
	var seen []string
	for _, trial := range p.Study.Trials {
		if !space.Contains(trial.Point) {
			t.Errorf("trial %d: %v is not allowed", trial.Number, space.Assignments(trial.Point))
		}
		text := fmt.Sprint(space.Assignments(trial.Point), trial.Resource)
		if !r.Repeats && slices.Contains(seen, text) {
			t.Errorf("trial %d: %s came before", trial.Number, text)
		}
		seen = append(seen, text)
	}
}
