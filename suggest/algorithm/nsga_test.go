package algorithm_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// zdt1 of Zitzler, Deb and Thiele (2000).
func zdt1(p suggest.Point) []float64 {
	g := 0.0
	for _, v := range p[1:] {
		g += v.Float()
	}
	g = 1 + 9*g/float64(len(p)-1)
	return []float64{p[0].Float(), g * (1 - math.Sqrt(p[0].Float()/g))}
}

// dtlz2 of Deb, Thiele, Laumanns and Zitzler (2002), with so many objectives.
func dtlz2(objectives int) func(suggest.Point) []float64 {
	return func(p suggest.Point) []float64 {
		g := 0.0
		for _, v := range p[objectives-1:] {
			g += (v.Float() - 0.5) * (v.Float() - 0.5)
		}
		out := make([]float64, objectives)
		for i := range out {
			out[i] = 1 + g
			for _, v := range p[:objectives-1-i] {
				out[i] *= math.Cos(v.Float() * math.Pi / 2)
			}
			if i > 0 {
				out[i] *= math.Sin(p[objectives-1-i].Float() * math.Pi / 2)
			}
		}
		return out
	}
}

// volumeOf plays a study and measures the hypervolume of its trials.
func volumeOf(t *testing.T, name string, seed uint64, f func(suggest.Point) []float64, ref []float64) float64 {
	t.Helper()
	space := doubles(t, "a", "b", "c", "d", "e", "f", "g", "h")
	s := suggest.Study{Space: space, Seed: seed, Objectives: objectives(len(ref), "")}
	a := newAlgorithm(t, name, space)
	var values [][]float64
	for len(s.Trials) < 400 {
		got, err := a.Suggest(t.Context(), s, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got {
			values = append(values, f(p.Point))
			s.Trials = append(s.Trials, &suggest.Trial{Number: len(s.Trials), Point: p.Point, Meta: p.Meta, State: suggest.Succeeded, Values: values[len(values)-1]})
		}
	}
	return pareto.Hypervolume(values, ref)
}

func TestGeneticAlgorithmsBeatRandom(t *testing.T) {
	problems := map[string]struct {
		f   func(suggest.Point) []float64
		ref []float64
	}{
		"zdt1":                   {zdt1, []float64{1.1, 5}},
		"dtlz2, three":           {dtlz2(3), []float64{1.5, 1.5, 1.5}},
		"dtlz2, five objectives": {dtlz2(5), []float64{1.5, 1.5, 1.5, 1.5, 1.5}},
	}
	for name, p := range problems {
		for _, algorithm := range []string{"nsga2", "nsga3"} {
			t.Run(name+", "+algorithm, func(t *testing.T) {
				better := 0
				for seed := range uint64(5) {
					if volumeOf(t, algorithm, seed, p.f, p.ref) > volumeOf(t, "random", seed, p.f, p.ref) {
						better++
					}
				}
				if better < 5 {
					t.Errorf("it beats random in %d of 5 studies", better)
				}
			})
		}
	}
}

func TestGeneticAlgorithmsWithOneObjective(t *testing.T) {
	for _, name := range []string{"nsga2", "nsga3"} {
		space := doubles(t, "a", "b", "c", "d")
		p := suggesttest.Player{Algorithm: newAlgorithm(t, name, space), Study: suggest.Study{Space: space, Seed: 1, Objectives: objectives(1, "")}, Parallel: 4, Objective: squares(0.4)}
		if err := p.Play(t.Context(), 600); err != nil {
			t.Fatal(err)
		}
		if got := bestOf(p.Study.Trials); got > 1e-3 {
			t.Errorf("%s: the best is %v", name, got)
		}
	}
}

// With a constraint that forbids most of the space, the children lie where it
// holds.
func TestGeneticAlgorithmsLearnConstraints(t *testing.T) {
	for _, name := range []string{"nsga2", "nsga3"} {
		space := doubles(t, "a", "b", "c")
		s := suggest.Study{Space: space, Objectives: objectives(2, ""), Constraints: []suggest.Constraint{{Name: "c"}}}
		a := newAlgorithm(t, name, space)
		feasible := make([]int, 4)
		for len(s.Trials) < 400 {
			got, err := a.Suggest(t.Context(), s, 1)
			if err != nil {
				t.Fatal(err)
			}
			x := got[0].Point
			c := x[0].Float() + x[1].Float() - 0.3 // holds in 4.5 % of the space
			if c <= 0 {
				feasible[len(s.Trials)/100]++
			}
			s.Trials = append(s.Trials, &suggest.Trial{Number: len(s.Trials), Point: x, Meta: got[0].Meta, State: suggest.Succeeded, Values: []float64{1 - x[0].Float(), 1 - x[1].Float()}, Constraints: []float64{c}})
		}
		if feasible[3] < 50 || feasible[3] <= feasible[0] {
			t.Errorf("%s: of each hundred trials %v are feasible", name, feasible)
		}
	}
}

// With five objectives hardly any trial beats another. Those that survive must
// still come nearer to the front, which are the points at the distance 1 from
// the origin; random ones are at 1.33 in the mean.
func TestNSGA2ConvergesWithManyObjectives(t *testing.T) {
	space := doubles(t, "a", "b", "c", "d", "e", "f", "g", "h")
	f := dtlz2(5)
	for seed := range uint64(5) {
		s := suggest.Study{Space: space, Objectives: objectives(5, ""), Seed: seed}
		a := newAlgorithm(t, "nsga2", space)
		const trials, last = 400, 100
		sum := 0.0
		for number := range trials {
			got, err := a.Suggest(t.Context(), s, 1)
			if err != nil {
				t.Fatal(err)
			}
			trial := &suggest.Trial{Number: number, Point: got[0].Point, Meta: got[0].Meta, State: suggest.Succeeded, Values: f(got[0].Point)}
			if square := 0.0; number >= trials-last {
				for _, v := range trial.Values {
					square += v * v
				}
				sum += math.Sqrt(square) / last
			}
			s.Trials = append(s.Trials, trial)
		}
		if sum > 1.18 {
			t.Errorf("seed %d: the last trials are at the distance %.3f", seed, sum)
		}
	}
}

func TestGeneticSettingsMatter(t *testing.T) {
	space := doubles(t, "a", "b", "c", "d", "e")
	answers := func(name string, settings ...suggest.Setting) string {
		p := suggesttest.Player{Algorithm: newAlgorithm(t, name, space, settings...), Study: suggest.Study{Space: space, Objectives: objectives(1, "")}, Objective: squares(0.3)}
		if err := p.Play(t.Context(), 120); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(p.Study.Trials[119].Point)
	}
	for _, name := range []string{"nsga2", "nsga3"} {
		seen := []string{answers(name)}
		for _, s := range []suggest.Setting{{Name: "population", Value: "12"}, {Name: "crossover_prob", Value: "0.2"}, {Name: "mutation_prob", Value: "0.9"}} {
			got := answers(name, s)
			if slices.Contains(seen, got) {
				t.Errorf("%s: %s = %s changes nothing", name, s.Name, s.Value)
			}
			seen = append(seen, got)
		}
	}
}

// The best points of other studies are tried first, those of each in turn.
func TestEvolutionariesStartWarm(t *testing.T) {
	space := doubles(t, "a", "b")
	point := func(a, b float64) suggest.Point { return space.Decode([]float64{a, b}) }
	s := suggest.Study{Space: space, Objectives: objectives(1, "")}
	for i, v := range []float64{3, 1, 2} {
		s.Warm = append(s.Warm,
			&suggest.Trial{Number: i, Point: point(v/10, 0.5), State: suggest.Succeeded, Values: []float64{v}, Meta: suggest.Meta{"study": "one"}},
			&suggest.Trial{Number: i, Point: point(0.5, v/10), State: suggest.Succeeded, Values: []float64{-100 * v}, Meta: suggest.Meta{"study": "two"}})
	}
	for _, name := range []string{"nsga2", "nsga3", "regularized-evolution"} {
		got, err := newAlgorithm(t, name, space).Suggest(t.Context(), s, 5)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []suggest.Point{point(0.1, 0.5), point(0.5, 0.3), point(0.2, 0.5), point(0.5, 0.2)} {
			if !got[i].Point.Equal(want) {
				t.Errorf("%s: proposal %d is %v, want %v", name, i, got[i].Point, want)
			}
		}
	}
}
