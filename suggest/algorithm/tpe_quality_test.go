package algorithm_test

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// measured is what one trial of a numeric problem gives.
type measured struct {
	values, constraints []float64
	failed              bool
}

// search plays a problem over six numbers between 0 and 1.
func search(t *testing.T, name string, s suggest.Study, n int, f func(u []float64) measured) []*suggest.Trial {
	t.Helper()
	specs := make([]suggest.ParameterSpec, 6)
	for i := range specs {
		specs[i] = suggest.ParameterSpec{Name: string(rune('a' + i)), Kind: suggest.Double, Min: "0", Max: "1"}
	}
	s.Space = newSpace(t, specs...)
	for i := range s.Warm {
		s.Warm[i].Point = s.Space.Decode(slices.Repeat([]float64{0.2}, 6))
		s.Warm[i].Point[0] = s.Space.At(0).Decode(float64(i) / float64(len(s.Warm)))
	}
	r, _ := algorithm.Get(name)
	a, err := r.New(s.Space, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := s.Space.Encode(got[0].Point)
		m := f(u)
		trial := &suggest.Trial{Number: s.NextNumber(), Point: got[0].Point, State: suggest.Succeeded, Values: m.values, Constraints: m.constraints}
		if m.failed {
			trial.State, trial.Values = suggest.Failed, nil
		}
		s.Trials = append(s.Trials, trial)
	}
	return s.Trials
}

func bowlAt(u []float64, centre float64) float64 {
	sum := 0.0
	for _, x := range u {
		sum += (x - centre) * (x - centre)
	}
	return sum
}

// TestTPELearns holds that tpe is better than random search, in the median over
// seeds, on problems of several kinds: by what was measured, with room.
func TestTPELearns(t *testing.T) {
	one := []suggest.Objective{{Name: "y"}}
	two := []suggest.Constraint{{Name: "c"}, {Name: "d"}}
	warm := make([]*suggest.Trial, 20)
	for i := range warm {
		x := float64(i) / 20
		warm[i] = &suggest.Trial{Number: i, State: suggest.Succeeded, Values: []float64{1e6 + (x-0.2)*(x-0.2)}, Meta: suggest.Meta{"study": "before"}}
	}
	cases := map[string]struct {
		study suggest.Study
		n     int
		f     func(u []float64) measured
		loss  func(trials []*suggest.Trial) float64
		share float64 // of random search's loss that is allowed
	}{
		"a bowl": {suggest.Study{Objectives: one}, 80,
			func(u []float64) measured { return measured{values: []float64{bowlAt(u, 0.2)}} }, best, 0.2},
		"a region of failures": {suggest.Study{Objectives: one}, 80,
			func(u []float64) measured {
				return measured{values: []float64{bowlAt(u, 0.2)}, failed: u[0] < 0.4}
			}, best, 0.5},
		"constraints": {suggest.Study{Objectives: one, Constraints: two}, 80,
			func(u []float64) measured {
				return measured{values: []float64{bowlAt(u, 0.2)}, constraints: []float64{0.8 - u[0] - u[1], u[2] + u[3] - 0.7}}
			}, best, 0.7},
		"another study": {suggest.Study{Objectives: one, Warm: warm}, 15,
			func(u []float64) measured { return measured{values: []float64{bowlAt(u, 0.2)}} }, best, 0.5},
		"two objectives": {suggest.Study{Objectives: append(one, one...)}, 120,
			func(u []float64) measured {
				return measured{values: []float64{bowlAt(u, 0.2), bowlAt(u, 0.6)}}
			}, missing, 0.9},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			median := func(algorithm string) float64 {
				var losses []float64
				for seed := range uint64(7) {
					c.study.Seed = seed
					losses = append(losses, c.loss(search(t, algorithm, c.study, c.n, c.f)))
				}
				slices.Sort(losses)
				return losses[3]
			}
			if tpe, random := median("tpe"), median("random"); !(tpe < c.share*random) {
				t.Errorf("the loss is %v, that of random search %v", tpe, random)
			}
		})
	}
}

// best is the smallest value of a trial that keeps all constraints.
func best(trials []*suggest.Trial) float64 {
	least := math.Inf(1)
	for _, t := range trials {
		keeps := !slices.ContainsFunc(t.Constraints, func(c float64) bool { return c > 0 })
		if t.State == suggest.Succeeded && keeps {
			least = math.Min(least, t.Values[0])
		}
	}
	return least
}

// missing is the part of the hypervolume that is not reached: the front lies
// between the two centres.
func missing(trials []*suggest.Trial) float64 {
	var points, front [][]float64
	for _, t := range trials {
		points = append(points, t.Values)
	}
	for i := range 101 {
		u := slices.Repeat([]float64{0.2 + 0.4*float64(i)/100}, 6)
		front = append(front, []float64{bowlAt(u, 0.2), bowlAt(u, 0.6)})
	}
	ref := []float64{2, 2}
	return pareto.Hypervolume(front, ref) - pareto.Hypervolume(points, ref)
}

// With a model the points of bohb are better than those of hyperband, which are
// random.
func TestBOHBLearns(t *testing.T) {
	median := func(name string) float64 {
		var losses []float64
		for seed := range uint64(7) {
			trials := search(t, name, suggest.Study{Seed: seed, Objectives: []suggest.Objective{{Name: "y"}}}, 300,
				func(u []float64) measured { return measured{values: []float64{bowlAt(u, 0.3)}} })
			losses = append(losses, best(trials))
		}
		slices.Sort(losses)
		return losses[3]
	}
	if bohb, hyperband := median("bohb"), median("hyperband"); !(bohb < hyperband/3) {
		t.Errorf("the loss is %v, that of hyperband %v", bohb, hyperband)
	}
}

func TestBOHBSettings(t *testing.T) {
	r, _ := algorithm.Get("bohb")
	space := newSpace(t, letters("a", 30))
	_, err := r.New(space, suggest.Settings{{Name: "sampler", Value: "random"}})
	if err == nil {
		t.Error("bohb does not draw its points itself")
	}
	if slices.ContainsFunc(r.Settings, func(s propose.Setting) bool { return s.Name == "sampler" }) {
		t.Error("the setting sampler is documented")
	}
}
