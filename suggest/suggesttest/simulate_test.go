package suggesttest_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	s := suggesttest.Simulation{Problem: p, Workers: 4, Seed: seed, Resume: true}
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
	var settings suggest.Settings
	if rule == "asha" { // as its page says, where all trials are as long
		settings = suggest.Settings{{Name: "r_max", Value: fmt.Sprint(p.Steps)}}
	}
	if s.Stopper, err = stopper.New(settings); err != nil {
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

// quality is the median, over the seeds, of the incumbents' values after the
// cost of so many whole trainings.
func quality(t *testing.T, p suggesttest.CurveProblem, name, rule string, trainings float64, seeds int) float64 {
	t.Helper()
	var values []float64
	for seed := range uint64(seeds) {
		s := simulation(t, p, name, rule, seed)
		s.Cost = int64(trainings * float64(p.Steps))
		values = append(values, run(t, s).At(s.Cost))
	}
	return median(values)
}

// With a quarter of the cost of random search, successive halving without
// waiting, with a model too, is as good as random search is at its end, on each problem. The
// rule asha, which decides later than the algorithm, is with half where points are random.
func TestAPartOfTheCostSuffices(t *testing.T) {
	const trainings = 50
	for _, p := range suggesttest.CurveProblems() {
		random := quality(t, p, "random", "", trainings, 20)
		for _, with := range []struct {
			algorithm, rule string
			seeds           int     // few for models, which take their time
			part            float64 // of the cost
		}{{"asha", "", 20, 4}, {"random", "asha", 20, 2}, {"mobster", "", 3, 4}, {"bayesianoptimization", "asha", 3, 4}} {
			got := quality(t, p, with.algorithm, with.rule, trainings/with.part, with.seeds)
			t.Logf("%s, %s %s: %.4f with 1/%g of the cost, random %.4f", p.Name, with.algorithm, with.rule, got, with.part, random)
			if !(got <= random) {
				t.Errorf("%s, %s %s: %v with 1/%g of the cost, random %v", p.Name, with.algorithm, with.rule, got, with.part, random)
			}
		}
	}
}

// A sampler that learns from the trials with part of the resource makes ASHA
// better still.
func TestASamplerThatLearnsHelps(t *testing.T) {
	p := suggesttest.CurveProblems()[1]
	at := map[string][]float64{}
	for _, sampler := range []string{"random", "bayesianoptimization"} {
		for seed := range uint64(6) {
			s := simulation(t, p, "asha", "", seed)
			r, _ := algorithm.Get("asha")
			space, err := suggest.NewSpace(p.Parameters)
			if err != nil {
				t.Fatal(err)
			}
			if s.Algorithm, err = r.New(space, suggest.Settings{{Name: "sampler", Value: sampler}}); err != nil {
				t.Fatal(err)
			}
			s.Cost = 10 * p.Steps
			at[sampler] = append(at[sampler], run(t, s).At(s.Cost))
		}
	}
	if model, random := median(at["bayesianoptimization"]), median(at["random"]); !(model < random) {
		t.Errorf("with bayesianoptimization it comes to %v, with random to %v", model, random)
	}
}

// With the same trials, the rules that compare with complete ones save cost over
// all the problems, and lose little on any.
func TestStoppingSavesCostAndLosesLittle(t *testing.T) {
	for rule, spend := range map[string]float64{"medianstop": 0.8, "curve": 0.4} {
		cost, whole := int64(0), int64(0)
		for _, p := range suggesttest.CurveProblems() {
			var lost []float64
			for seed := range uint64(20) {
				with, without := simulation(t, p, "random", rule, seed), simulation(t, p, "random", "", seed)
				with.Trials, without.Trials = 30, 30
				a, b := run(t, with), run(t, without)
				cost, whole = cost+a.Cost, whole+b.Cost
				lost = append(lost, a.At(a.Cost)-b.At(b.Cost))
			}
			if worst := slices.Max(lost); worst > 0.02 || median(lost) > 0.001 {
				t.Errorf("%s, %s: lost %v", p.Name, rule, lost)
			}
		}
		t.Logf("%s: %.0f %% of the cost", rule, 100*float64(cost)/float64(whole))
		if float64(cost) > spend*float64(whole) {
			t.Errorf("%s: %d of %d steps", rule, cost, whole)
		}
	}
}

// bits writes what an outcome has to the last bit.
func bits(o suggesttest.Outcome) string {
	out := fmt.Sprint(o.Path, o.Cost, o.Time)
	for _, t := range o.Study.Trials {
		out += fmt.Sprint(*t)
	}
	return out
}

// Played again, a simulation is the same to the last bit; and so it is when all
// values are negated and maximized.
func TestReplay(t *testing.T) {
	p := suggesttest.CurveProblems()[2]
	for _, with := range []struct{ algorithm, rule string }{{"asha", "asha"}, {"hyperband", ""}, {"random", "hyperband"}, {"sobol", "curve"}} {
		s := simulation(t, p, with.algorithm, with.rule, 3)
		s.Cost = 10 * p.Steps
		want := run(t, s)
		if got := run(t, s); bits(got) != bits(want) {
			t.Errorf("%v: two outcomes", with)
		}
		s = simulation(t, p, with.algorithm, with.rule, 3)
		s.Cost, s.Direction = 10*p.Steps, suggest.Maximize
		if got := run(t, s); fmt.Sprint(got.Path) != fmt.Sprint(want.Path) {
			t.Errorf("%v: maximize does not mirror minimize", with)
		}
	}
}

// The simulator itself: costs, resources and the clock.
func TestSimulation(t *testing.T) {
	p := suggesttest.CurveProblems()[0]
	s := simulation(t, p, "hyperband", "", 1)
	s.Cost, s.Workers = 5000, 3
	out := run(t, s)
	steps, killed := int64(0), 0
	for _, trial := range out.Study.Trials {
		steps += int64(len(trial.Curve))
		if trial.State == suggest.Killed {
			killed++
			continue
		}
		first, last := trial.Curve[0].Step, trial.Curve[len(trial.Curve)-1].Step
		if float64(last) != trial.Resource {
			t.Errorf("trial %d ended at step %d of %g", trial.Number, last, trial.Resource)
		}
		if _, continues := trial.Meta["parent"]; continues != (first > 1) {
			t.Errorf("trial %d begins at step %d", trial.Number, first)
		}
	}
	if steps != out.Cost || out.Cost != 5000 || killed != 3 {
		t.Errorf("%d steps cost %d, and %d trials were killed at the end", steps, out.Cost, killed)
	}
	if ideal := float64(out.Cost) / 3; math.Abs(out.Time/ideal-1) > 0.1 {
		t.Errorf("3 workers needed %v for %d steps", out.Time, out.Cost)
	}
	for i := 1; i < len(out.Path); i++ {
		if out.Path[i].Cost <= out.Path[i-1].Cost || out.Path[i].Time < out.Path[i-1].Time {
			t.Errorf("the path goes back: %v", out.Path[i-1:i+1])
		}
	}
}

// Promotions, rungs and the fits of the model come back from the trials alone:
// a new process at each question shows nothing.
func TestRestartsDoNotShowInTrainings(t *testing.T) {
	p := suggesttest.CurveProblems()[2]
	for _, with := range []struct{ algorithm, rule string }{{"mobster", ""}, {"mobster", "asha"}, {"bayesianoptimization", "asha"}} {
		var want suggesttest.Outcome
		for i, restarts := range []bool{false, true} {
			s := simulation(t, p, with.algorithm, with.rule, 3)
			s.Cost = 3 * p.Steps
			if restarts {
				r, _ := algorithm.Get(with.algorithm)
				s.Algorithm = restarting(r.New)
			}
			got := run(t, s)
			if i == 0 {
				want = got
				continue
			}
			if diff := cmp.Diff(points(want.Study), points(got.Study)); diff != "" {
				t.Errorf("%s %s (-one process +many):\n%s", with.algorithm, with.rule, diff)
			}
		}
	}
}

// restarting builds the algorithm for each question.
type restarting suggest.New

// Suggest implements suggest.Algorithm.
func (r restarting) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	a, err := r(s.Space, nil)
	if err != nil {
		return nil, err
	}
	return a.Suggest(ctx, s, n)
}

func points(s suggest.Study) []string {
	var out []string
	for _, t := range s.Trials {
		out = append(out, fmt.Sprint(s.Space.Assignments(t.Point), t.Resource, t.Meta))
	}
	return out
}
