package algorithm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

var multiFidelity = []string{"asha", "dehb", "hyperband", "mobster", "pasha", "successive-halving"}

// world plays an algorithm: running trials end in a random order.
type world struct {
	t         *testing.T
	algorithm suggest.Algorithm
	study     suggest.Study
	running   []int
	stream    *rng.Stream
	// end gives the trial's state and value.
	end func(*suggest.Trial) (suggest.State, float64)
}

func newWorld(t *testing.T, name string, specs []suggest.ParameterSpec, settings ...suggest.Setting) *world {
	t.Helper()
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := algorithm.Get(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	a, err := r.New(space, settings)
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, algorithm: a, stream: rng.New(1, "world", 0, "order"),
		study: suggest.Study{Space: space, Seed: 5, Objectives: []suggest.Objective{{Name: "loss"}}},
		end:   func(t *suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, t.Point[0].Float() },
	}
}

// ask starts up to n trials and says how many.
func (w *world) ask(n int) int {
	w.t.Helper()
	got, err := w.algorithm.Suggest(context.Background(), w.study, n)
	if err != nil && !errors.Is(err, suggest.ErrExhausted) {
		w.t.Fatal(err)
	}
	next := w.study.NextNumber()
	for i, p := range got {
		if p.Why == "" {
			w.t.Errorf("trial %d comes without a reason", next+i)
		}
		w.running = append(w.running, len(w.study.Trials))
		w.study.Trials = append(w.study.Trials, &suggest.Trial{Number: next + i, Point: p.Point, Meta: p.Meta, Resource: p.Resource, State: suggest.Running})
	}
	return len(got)
}

// finish ends one of the running trials.
func (w *world) finish() {
	i := int(w.stream.Uint64N(uint64(len(w.running))))
	trial := w.study.Trials[w.running[i]]
	w.running = slices.Delete(w.running, i, i+1)
	state, value := w.end(trial)
	w.study.Update(trial.Number, func(t *suggest.Trial) {
		t.State = state
		if state == suggest.Succeeded || state == suggest.Pruned {
			t.Values = []float64{value}
		}
	})
}

// play runs n trials, parallel of them at a time, and holds that no worker ever
// waits.
func (w *world) play(n, parallel int) {
	w.t.Helper()
	for len(w.study.Trials) < n {
		want := min(parallel-len(w.running), n-len(w.study.Trials))
		if got := w.ask(want); got != want {
			w.t.Fatalf("after %d trials, with %d running: %d proposals, want %d", len(w.study.Trials), len(w.running), got, want)
		}
		w.finish()
	}
	for len(w.running) > 0 {
		w.finish()
	}
}

func unit() []suggest.ParameterSpec {
	return []suggest.ParameterSpec{{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}}
}

// table counts the trials by bracket and resource.
func table(trials []*suggest.Trial) map[string]int {
	out := map[string]int{}
	for _, trial := range trials {
		out[fmt.Sprintf("bracket %s: %g", trial.Meta["bracket"], trial.Resource)]++
	}
	return out
}

// TestASamplerThatLearnsKeepsTheContract runs the suite with one.
func TestASamplerThatLearnsKeepsTheContract(t *testing.T) {
	r, _ := algorithm.Get("asha")
	build := r.New
	r.New = func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		if slices.ContainsFunc(settings, func(s suggest.Setting) bool { return s.Name == "sampler" }) {
			return build(space, settings)
		}
		return build(space, append(slices.Clone(settings), suggest.Setting{Name: "sampler", Value: "tpe"}))
	}
	holdToContract(t, r)
}

// What the parameter of the resource cannot be is no rung: it would be trained twice.
func TestRungsLieInTheRangeOfTheParameter(t *testing.T) {
	epochs := suggest.ParameterSpec{Name: "epochs", Kind: suggest.Int, Min: "10", Max: "100"}
	for _, settings := range [][]suggest.Setting{
		nil, {{Name: "r_max", Value: "1000"}}, {{Name: "r_min", Value: "1"}}, {{Name: "r_l", Value: "1000"}, {Name: "r_min", Value: "1"}},
	} {
		for _, name := range multiFidelity {
			w := newWorld(t, name, append(unit(), epochs), append(slices.Clone(settings), suggest.Setting{Name: "resource_name", Value: "epochs"})...)
			w.play(40, 1)
			for _, trial := range w.study.Trials {
				if got := trial.Point[1].Float(); got != trial.Resource {
					t.Errorf("%s, %v: trial %d of resource %g trains for %g", name, settings, trial.Number, trial.Resource, got)
				}
			}
		}
	}
}

// A power is a power, also where floating point has log(243)/log(3) below 5.
func TestRungsAreCountedInWholeNumbers(t *testing.T) {
	for r, want := range map[string]float64{"243": 1, "242": 2, "728": 2, "729": 1} {
		for _, name := range multiFidelity {
			w := newWorld(t, name, unit(), suggest.Setting{Name: "r_l", Value: r})
			if w.ask(1); w.study.Trials[0].Resource != want {
				t.Errorf("%s, up to %s: the first resource is %g, want %g", name, r, w.study.Trials[0].Resource, want)
			}
		}
	}
}

// promotions holds what each promotion must satisfy, and gives the largest
// resource that was reached.
func promotions(t *testing.T, trials []*suggest.Trial) (largest float64) {
	t.Helper()
	promoted := map[int]bool{}
	for _, trial := range trials {
		if trial.State == suggest.Succeeded {
			largest = max(largest, trial.Resource)
		}
		text, ok := trial.Meta["parent"]
		if !ok {
			continue
		}
		number, err := strconv.Atoi(text)
		if err != nil || number >= trial.Number {
			t.Fatalf("trial %d has the parent %q", trial.Number, text)
		}
		parent := trials[number]
		if promoted[number] {
			t.Errorf("trial %d was promoted twice", number)
		}
		promoted[number] = trial.State != suggest.Killed
		if !parent.Point.Equal(trial.Point) || parent.Resource >= trial.Resource || parent.Meta["bracket"] != trial.Meta["bracket"] {
			t.Errorf("trial %d %v does not continue trial %d %v", trial.Number, trial, number, parent)
		}
		if parent.State != suggest.Succeeded || math.IsNaN(parent.Values[0]) {
			t.Errorf("trial %d, which was promoted, is %v %v", number, parent.State, parent.Values)
		}
	}
	return largest
}

// With any number of workers, with trials that end in all ways in any order,
// there is always work, and the best points get the whole resource.
func TestMultiFidelityNeverWaits(t *testing.T) {
	ends := map[string]func(*suggest.Trial) (suggest.State, float64){
		"all succeed": func(t *suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, t.Point[0].Float() },
		"some fail, are stopped or killed": func(t *suggest.Trial) (suggest.State, float64) {
			u := rng.New(1, "end", t.Number, "kind").Float64()
			switch {
			case u < 0.2:
				return suggest.Failed, 0
			case u < 0.3:
				return suggest.Succeeded, math.NaN()
			case u < 0.4:
				return suggest.Pruned, -5
			case u < 0.5:
				return suggest.Killed, 0
			case u < 0.55:
				return suggest.Unmeasured, 0
			}
			return suggest.Succeeded, t.Point[0].Float()
		},
		"all are equal": func(*suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, 1 },
	}
	for _, name := range multiFidelity {
		for what, end := range ends {
			for _, parallel := range []int{1, 7, 100} {
				t.Run(fmt.Sprintf("%s, %s, %d at a time", name, what, parallel), func(t *testing.T) {
					w := newWorld(t, name, unit(), suggest.Setting{Name: "r_max", Value: "27"})
					w.end = end
					w.play(600, parallel)
					want := 27.0
					switch {
					case name == "pasha":
						want = 3 // two rungs are enough where their order never changes
					case parallel == 100:
						want = 9 // six trials a worker are soon over
					}
					if largest := promotions(t, w.study.Trials); largest < want {
						t.Errorf("the largest resource is %g", largest)
					}
				})
			}
		}
	}
}

// When all trials fail there is still something to try.
func TestMultiFidelityGoesOnWhenAllFail(t *testing.T) {
	for _, name := range multiFidelity {
		w := newWorld(t, name, unit())
		w.end = func(*suggest.Trial) (suggest.State, float64) { return suggest.Failed, 0 }
		w.play(300, 4)
		promotions(t, w.study.Trials)
	}
}

// The resource goes into the parameter that is named for it, rounded to what it
// allows; points that differ in nothing else are the same.
func TestResourceName(t *testing.T) {
	specs := []suggest.ParameterSpec{
		{Name: "c", Kind: suggest.Categorical, List: []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}},
		{Name: "epochs", Kind: suggest.Int, Min: "2", Max: "20", Step: "3"},
	}
	for _, name := range multiFidelity {
		w := newWorld(t, name, specs, suggest.Setting{Name: "resource_name", Value: "epochs"})
		w.end = func(t *suggest.Trial) (suggest.State, float64) {
			i, _ := t.Point[0].Index()
			return suggest.Succeeded, float64(i)
		}
		fresh := map[string]int{}
		for w.ask(3) > 0 || len(w.running) > 0 {
			w.finish()
		}
		epochs := map[float64]string{2: "2", 6: "5", 20: "20"}
		for _, trial := range w.study.Trials {
			if got, want := trial.Point[1].String(), epochs[trial.Resource]; got != want {
				t.Errorf("%s: with resource %g the parameter is %s, want %s", name, trial.Resource, got, want)
			}
			if _, ok := trial.Meta["parent"]; !ok {
				fresh[trial.Point[0].String()]++
			}
		}
		for c, n := range fresh {
			if n != 1 {
				t.Errorf("%s: %s was started %d times", name, c, n)
			}
		}
		if len(fresh) != 12 {
			t.Errorf("%s: %d of 12 points were tried", name, len(fresh))
		}
	}
}

func TestFidelitySettings(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "c", Kind: suggest.Categorical, List: []string{"a", "b"}},
		{Name: "x", Kind: suggest.Double, Min: "-3", Max: "0"},
		{Name: "n", Kind: suggest.Int, Min: "1", Max: "9"},
		{Name: "m", Kind: suggest.Int, Min: "1", Max: "9", When: &suggest.When{Parameter: "c", In: []string{"a"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		settings suggest.Settings
		want     string
	}{
		"no such parameter":       {suggest.Settings{{Name: "resource_name", Value: "epochs"}}, `setting "resource_name" is "epochs", which is no parameter; name one of the space`},
		"no number":               {suggest.Settings{{Name: "resource_name", Value: "c"}}, `setting "resource_name" is "c", which is not a number in each trial; name an int, double or discrete without a condition`},
		"conditional":             {suggest.Settings{{Name: "resource_name", Value: "m"}}, `setting "resource_name" is "m", which is not a number in each trial; name an int, double or discrete without a condition`},
		"never positive":          {suggest.Settings{{Name: "resource_name", Value: "x"}}, `setting "resource_name" is "x", which is never 1 or more; raise its range`},
		"the ends are swapped":    {suggest.Settings{{Name: "r_min", Value: "10"}, {Name: "r_max", Value: "9"}}, `setting "r_min" is 10, above r_max, 9; lower it`},
		"Katib's, as it is given": {suggest.Settings{{Name: "r_l", Value: "9.0"}, {Name: "eta", Value: "3"}, {Name: "resource_name", Value: "n"}}, ""},
	}
	for name, c := range cases {
		for _, a := range multiFidelity {
			r, _ := algorithm.Get(a)
			_, err := r.New(space, c.settings)
			if got := fmt.Sprint(err); err == nil && c.want != "" || err != nil && got != c.want {
				t.Errorf("%s, %s: got %v, want %s", name, a, err, c.want)
			}
		}
	}
}
