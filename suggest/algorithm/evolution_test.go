package algorithm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// architecture is a space of choices, with one that is conditional.
func architecture(t testing.TB) suggest.Space {
	t.Helper()
	var specs []suggest.ParameterSpec
	for i := range 10 {
		specs = append(specs, suggest.ParameterSpec{Name: fmt.Sprint("layer", i), Kind: suggest.Categorical, List: []string{"3x3", "5x5", "pool", "skip", "none"}})
	}
	specs = append(specs, suggest.ParameterSpec{Name: "rate", Kind: suggest.Int, Min: "1", Max: "6", When: &suggest.When{Parameter: "layer0", In: []string{"3x3", "pool"}}})
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// reward of an architecture: each layer has a best choice, and neighbours that
// fit count too. The measurement is noisy.
func reward(seed uint64) (measured, exact func(int, suggest.Point) float64) {
	exact = func(_ int, p suggest.Point) float64 {
		loss := 0.0
		for i := range 10 {
			index, _ := p[i].Index()
			if int(index) != (3*i)%5 {
				loss++
			}
			if i > 0 && p[i].Equal(p[i-1]) {
				loss += 0.5
			}
		}
		return loss
	}
	measured = func(number int, p suggest.Point) float64 {
		return exact(number, p) + 0.3*rng.New(seed, "test", number, "noise").NormFloat64()
	}
	return measured, exact
}

func TestEvolutionBeatsRandomOnArchitectures(t *testing.T) {
	space := architecture(t)
	best := func(name string, seed uint64) float64 {
		measured, exact := reward(seed)
		p := suggesttest.Player{Algorithm: newAlgorithm(t, name, space), Study: suggest.Study{Space: space, Seed: seed, Objectives: objectives(1, "")}, Parallel: 4, Objective: measured}
		if err := p.Play(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
		best := 99.0
		for _, trial := range p.Study.Trials {
			best = min(best, exact(0, trial.Point))
		}
		return best
	}
	better := 0
	for seed := range uint64(10) {
		if best("regularized-evolution", seed) < best("random", seed)-1 {
			better++
		}
	}
	if better < 9 {
		t.Errorf("it is better by more than one layer in %d of 10 studies", better)
	}
}

// Once there are founders, a point differs in one parameter, and what that
// makes active, from one of the latest trials.
func TestEvolutionChangesOneParameter(t *testing.T) {
	space := architecture(t)
	settings := []suggest.Setting{{Name: "population", Value: "15"}, {Name: "founders", Value: "12"}, {Name: "sample_size", Value: "3"}}
	a := newAlgorithm(t, "regularized-evolution", space, settings...)
	s := suggest.Study{Space: space, Seed: 4, Objectives: objectives(2, "")}
	for len(s.Trials) < 80 {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		p := got[0].Point
		if n := len(s.Trials); n >= 12 {
			least := 99
			for _, trial := range s.Trials[max(0, n-15):] {
				changed := 0
				for i := range 10 {
					if !trial.Point[i].Equal(p[i]) {
						changed++
					}
				}
				least = min(least, changed)
			}
			if least > 1 {
				t.Errorf("trial %d differs from the latest ones in %d choices", n, least)
			}
		}
		_, exact := reward(0)
		index, _ := p[9].Index()
		s.Trials = append(s.Trials, &suggest.Trial{Number: len(s.Trials), Point: p, State: suggest.Succeeded, Values: []float64{exact(0, p), float64(index)}})
	}
}

func TestEvolutionSettingsMatter(t *testing.T) {
	space := architecture(t)
	answers := func(settings ...suggest.Setting) string {
		measured, _ := reward(1)
		p := suggesttest.Player{Algorithm: newAlgorithm(t, "regularized-evolution", space, settings...), Study: suggest.Study{Space: space, Objectives: objectives(1, "")}, Objective: measured}
		if err := p.Play(t.Context(), 120); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(p.Study.Trials[119].Point)
	}
	seen := []string{answers()}
	for _, s := range []suggest.Setting{{Name: "population", Value: "30"}, {Name: "founders", Value: "50"}, {Name: "sample_size", Value: "2"}} {
		got := answers(s)
		if slices.Contains(seen, got) {
			t.Errorf("%s = %s changes nothing", s.Name, s.Value)
		}
		seen = append(seen, got)
	}
}
