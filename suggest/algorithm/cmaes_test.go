package algorithm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

func doubles(t testing.TB, names ...string) suggest.Space {
	t.Helper()
	var specs []suggest.ParameterSpec
	for _, name := range names {
		specs = append(specs, suggest.ParameterSpec{Name: name, Kind: suggest.Double, Min: "0", Max: "1"})
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func squares(best float64) func(int, suggest.Point) float64 {
	return func(_ int, p suggest.Point) float64 {
		sum := 0.0
		for _, v := range p {
			sum += (v.Float() - best) * (v.Float() - best)
		}
		return sum
	}
}

func bestOf(trials []*suggest.Trial) float64 {
	best := trials[0].Values[0]
	for _, t := range trials {
		if len(t.Values) > 0 {
			best = min(best, t.Values[0])
		}
	}
	return best
}

func TestCmaesConverges(t *testing.T) {
	for name, best := range map[string]float64{"inside": 0.3, "at the end": 1} {
		for _, parallel := range []int{1, 16} {
			space := doubles(t, "a", "b", "c", "d", "e")
			p := suggesttest.Player{Algorithm: newAlgorithm(t, "cmaes", space), Study: suggest.Study{Space: space, Seed: 1, Objectives: objectives(1, "")}, Parallel: parallel, Objective: squares(best)}
			if err := p.Play(t.Context(), 1000); err != nil {
				t.Fatal(err)
			}
			if got := bestOf(p.Study.Trials); got > 1e-6 {
				t.Errorf("%s, %d at a time: the best is %v", name, parallel, got)
			}
		}
	}
}

// What other algorithms have tried before moves the first generation to where
// it was good.
func TestCmaesStartsWarm(t *testing.T) {
	space := doubles(t, "a", "b", "c", "d")
	objective := squares(0.9)
	random := suggesttest.Player{Algorithm: newAlgorithm(t, "random", space), Study: suggest.Study{Space: space, Seed: 2, Objectives: objectives(1, "")}, Objective: objective}
	if err := random.Play(t.Context(), 200); err != nil {
		t.Fatal(err)
	}
	cold := suggest.Study{Space: space, Seed: 1, Objectives: objectives(1, "")}
	own, warm := cold, cold
	own.Trials = random.Study.Trials
	warm.Warm = random.Study.Trials
	mean := func(s suggest.Study) float64 {
		got, err := newAlgorithm(t, "cmaes", space).Suggest(t.Context(), s, 20)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, p := range got {
			for _, v := range p.Point {
				sum += v.Float() / float64(len(got)*len(p.Point))
			}
		}
		return sum
	}
	if got := mean(cold); got < 0.45 || got > 0.55 {
		t.Errorf("without a start the samples are around %v, want 0.5", got)
	}
	for name, s := range map[string]suggest.Study{"trials of its own": own, "trials of another study": warm} {
		if got := mean(s); got < 0.65 {
			t.Errorf("%s: the samples are around %v", name, got)
		}
	}
}

// Results that come when their generation is over are in the next one.
func TestCmaesUsesLateResults(t *testing.T) {
	space := doubles(t, "a", "b", "c")
	w := &workers{algorithm: newAlgorithm(t, "cmaes", space, suggest.Setting{Name: "population", Value: "4"}), parallel: 7}
	w.study = suggest.Study{Space: space, Objectives: objectives(1, "")}
	w.values = func(p suggest.Point) []float64 { return []float64{p[0].Float()} }
	w.play(t, 200)
	used := map[string]bool{}
	late := 0
	generations := map[string]string{}
	for _, trial := range w.study.Trials {
		generation, parents, _ := strings.Cut(trial.Meta["cma"], " ")
		if before, ok := generations[generation]; ok && before != parents {
			t.Fatalf("generation %s comes from %q and from %q", generation, before, parents)
		} else if ok {
			continue
		}
		generations[generation] = parents
		if used[parents] {
			t.Fatalf("%q are the parents of two generations", parents)
		}
		used[parents] = parents != ""
		if numbers := strings.Split(parents, ","); len(numbers) > 1 {
			late++
		}
	}
	if len(generations) < 30 || late < 10 {
		t.Errorf("%d generations, %d of them from trials with gaps", len(generations), late)
	}
}

func TestCmaesRespectsParameterConstraints(t *testing.T) {
	space, err := doubles(t, "a", "b").WithConstraints([]string{"a + b <= 0.5"})
	if err != nil {
		t.Fatal(err)
	}
	p := suggesttest.Player{Algorithm: newAlgorithm(t, "cmaes", space), Study: suggest.Study{Space: space, Objectives: objectives(1, "")}, Objective: squares(0.4)}
	if err := p.Play(t.Context(), 200); err != nil {
		t.Fatal(err)
	}
	if got := bestOf(p.Study.Trials); got > 0.0451 { // (0.25, 0.25) has 0.045
		t.Errorf("the best is %v, want 0.045", got)
	}
}

func TestCmaesPutsFeasibleFirst(t *testing.T) {
	space := doubles(t, "a", "b", "c")
	s := suggest.Study{Space: space, Objectives: objectives(1, ""), Constraints: []suggest.Constraint{{Name: "sum"}}}
	a := newAlgorithm(t, "cmaes", space)
	best := 9.0
	for len(s.Trials) < 300 {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		x := got[0].Point
		loss, sum := squares(0.2)(0, x), x[0].Float()+x[1].Float()+x[2].Float()
		if sum >= 1.5 {
			best = min(best, loss)
		}
		s.Trials = append(s.Trials, &suggest.Trial{Number: len(s.Trials), Point: x, Meta: got[0].Meta, State: suggest.Succeeded, Values: []float64{loss}, Constraints: []float64{1.5 - sum}})
	}
	if best > 0.28 { // (0.5, 0.5, 0.5) has 0.27
		t.Errorf("the best feasible loss is %v, want 0.27", best)
	}
}

func TestCmaesSettingsMatter(t *testing.T) {
	space := doubles(t, "a", "b", "c")
	answers := func(settings ...suggest.Setting) string {
		p := suggesttest.Player{Algorithm: newAlgorithm(t, "cmaes", space, settings...), Study: suggest.Study{Space: space, Objectives: objectives(1, "")}, Objective: squares(0.3)}
		if err := p.Play(t.Context(), 800); err != nil {
			t.Fatal(err)
		}
		last := p.Study.Trials[len(p.Study.Trials)-1].Point
		return strings.Join([]string{last[0].String(), last[1].String(), last[2].String()}, " ")
	}
	seen := []string{answers()}
	for _, s := range []suggest.Setting{{Name: "population", Value: "12"}, {Name: "sigma", Value: "0.3"}, {Name: "separable", Value: "true"}, {Name: "restart_strategy", Value: "none"}} {
		got := answers(s)
		if slices.Contains(seen, got) {
			t.Errorf("%s = %s changes nothing", s.Name, s.Value)
		}
		seen = append(seen, got)
	}
}
