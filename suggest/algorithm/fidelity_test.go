package algorithm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
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
	end func(suggest.Trial) (suggest.State, float64)
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
		end:   func(t suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, t.Point[0].Float() },
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
		w.study.Trials = append(w.study.Trials, suggest.Trial{Number: next + i, Point: p.Point, Meta: p.Meta, Resource: p.Resource, State: suggest.Running})
	}
	return len(got)
}

// finish ends one of the running trials.
func (w *world) finish() {
	i := int(w.stream.Uint64N(uint64(len(w.running))))
	trial := &w.study.Trials[w.running[i]]
	w.running = slices.Delete(w.running, i, i+1)
	state, value := w.end(*trial)
	trial.State = state
	if state == suggest.Succeeded || state == suggest.Pruned {
		trial.Values = []float64{value}
	}
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
func table(trials []suggest.Trial) map[string]int {
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
	suggesttest.Run(t, r)
}

// Li et al., Hyperband (JMLR 18, 2018), table 1: R = 81, eta = 3.
func TestHyperbandTable(t *testing.T) {
	want := map[string]int{
		"bracket 0: 1": 81, "bracket 0: 3": 27, "bracket 0: 9": 9, "bracket 0: 27": 3, "bracket 0: 81": 1,
		"bracket 1: 3": 34, "bracket 1: 9": 11, "bracket 1: 27": 3, "bracket 1: 81": 1,
		"bracket 2: 9": 15, "bracket 2: 27": 5, "bracket 2: 81": 1,
		"bracket 3: 27": 8, "bracket 3: 81": 2,
		"bracket 4: 81": 5,
	}
	w := newWorld(t, "hyperband", unit())
	w.play(206, 1)
	if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With 30 trials Hyperband's first two brackets, of 121 and 49, would not come to
// their end; the third, of 21, does, and so does the last kind, of 5.
func TestHyperbandKeepsToTheBudget(t *testing.T) {
	for _, name := range []string{"hyperband", "dehb"} {
		want := map[string]int{"bracket 2: 9": 15, "bracket 2: 27": 5, "bracket 2: 81": 1, "bracket 4: 81": 5, "bracket 9: 81": 4}
		w := newWorld(t, name, unit())
		w.study.Budget = 30
		w.play(30, 1)
		if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSuccessiveHalvingTable(t *testing.T) {
	w := newWorld(t, "successive-halving", unit(), suggest.Setting{Name: "r_max", Value: "20"}, suggest.Setting{Name: "n_points", Value: "10"}, suggest.Setting{Name: "eta", Value: "2"})
	w.play(18+17, 1)
	want := map[string]int{ // the last rung of 2^4 <= 20 has all of it
		"bracket 0: 1": 10, "bracket 0: 2": 5, "bracket 0: 5": 2, "bracket 0: 10": 1,
		"bracket 1: 1": 10, "bracket 1: 2": 5, "bracket 1: 5": 2,
	}
	if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
func promotions(t *testing.T, trials []suggest.Trial) (largest float64) {
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
	ends := map[string]func(suggest.Trial) (suggest.State, float64){
		"all succeed": func(t suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, t.Point[0].Float() },
		"some fail, are stopped or killed": func(t suggest.Trial) (suggest.State, float64) {
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
		"all are equal": func(suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, 1 },
	}
	for _, name := range multiFidelity {
		for what, end := range ends {
			for _, parallel := range []int{1, 7, 100} {
				t.Run(fmt.Sprintf("%s, %s, %d at a time", name, what, parallel), func(t *testing.T) {
					w := newWorld(t, name, unit(), suggest.Setting{Name: "r_max", Value: "27"})
					w.end = end
					w.play(600, parallel)
					want := 27.0
					if parallel == 100 || name == "pasha" { // six trials a worker are soon over; and the order never changes
						want = 9
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
		w.end = func(suggest.Trial) (suggest.State, float64) { return suggest.Failed, 0 }
		w.play(300, 4)
		promotions(t, w.study.Trials)
	}
}

// In each rung of successive halving the best third goes on, and no other.
func TestTheBestGoOn(t *testing.T) {
	w := newWorld(t, "successive-halving", unit(), suggest.Setting{Name: "r_max", Value: "27"})
	w.play(80, 5)
	byRung := map[string][]float64{}
	for _, trial := range w.study.Trials {
		if trial.Meta["bracket"] == "0" {
			byRung[trial.Meta["rung"]] = append(byRung[trial.Meta["rung"]], trial.Point[0].Float())
		}
	}
	for rung := 1; rung <= 3; rung++ {
		below, here := byRung[strconv.Itoa(rung-1)], byRung[strconv.Itoa(rung)]
		slices.Sort(below)
		slices.Sort(here)
		if len(below) != 3*len(here) || !slices.Equal(below[:len(here)], here) {
			t.Errorf("rung %d has %v of %v", rung, here, below)
		}
	}
}

// A point that is among the best whatever the others bring need not wait.
func TestHyperbandPromotesWhatIsCertain(t *testing.T) {
	w := newWorld(t, "successive-halving", unit(), suggest.Setting{Name: "r_max", Value: "3"}, suggest.Setting{Name: "n_points", Value: "6"})
	w.ask(6)
	for i := range 5 {
		w.study.Trials[i].State, w.study.Trials[i].Values = suggest.Succeeded, []float64{float64(i)}
	}
	w.running = nil
	w.ask(2)
	first, second := w.study.Trials[6], w.study.Trials[7]
	if first.Meta["parent"] != "0" || second.Meta["bracket"] != "1" {
		t.Errorf("got %v and %v, want the best one of bracket 0 and a new point of bracket 1", first.Meta, second.Meta)
	}
}

func TestASHAPromotesFromTheHighestRung(t *testing.T) {
	w := newWorld(t, "asha", unit(), suggest.Setting{Name: "r_max", Value: "9"})
	w.ask(9)
	for i := range w.study.Trials {
		w.study.Trials[i].State, w.study.Trials[i].Values = suggest.Succeeded, []float64{float64(8 - i)}
	}
	w.ask(3)
	for i := 9; i < 12; i++ {
		if got, want := w.study.Trials[i].Meta["parent"], strconv.Itoa(17-i); got != want || w.study.Trials[i].Resource != 3 {
			t.Errorf("trial %d continues %s with %g, want %s with 3", i, got, w.study.Trials[i].Resource, want)
		}
		w.study.Trials[i].State, w.study.Trials[i].Values = suggest.Succeeded, []float64{float64(i)}
	}
	w.ask(2)
	if got := w.study.Trials[12]; got.Meta["parent"] != "9" || got.Resource != 9 {
		t.Errorf("got %v with %g, want trial 9 with 9", got.Meta, got.Resource)
	}
	if got := w.study.Trials[13]; got.Meta["rung"] != "0" {
		t.Errorf("got %v, want a new point", got.Meta)
	}
}

func TestAKilledPromotionIsRepeated(t *testing.T) {
	w := newWorld(t, "asha", unit(), suggest.Setting{Name: "r_max", Value: "9"})
	w.ask(3)
	for i := range w.study.Trials {
		w.study.Trials[i].State, w.study.Trials[i].Values = suggest.Succeeded, []float64{float64(i)}
	}
	for range 3 {
		w.ask(1)
		last := &w.study.Trials[len(w.study.Trials)-1]
		if last.Meta["parent"] != "0" {
			t.Errorf("trial %d is %v, want the best one again", last.Number, last.Meta)
		}
		last.State = suggest.Killed
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
		w.end = func(t suggest.Trial) (suggest.State, float64) {
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

// stepwise ends trials with a value that depends on the rung: at rungs above
// flips, the order of the points is reversed.
func stepwise(flips float64) func(suggest.Trial) (suggest.State, float64) {
	return func(t suggest.Trial) (suggest.State, float64) {
		x := t.Point[0].Float()
		if t.Resource > flips {
			x = -x
		}
		return suggest.Succeeded, x
	}
}

// PASHA opens a rung only when the order of the points changed at the highest
// two: a consistent order needs no rung above the third.
func TestPASHAOpensRungsWhenTheOrderChanges(t *testing.T) {
	cases := map[string]struct {
		flips, want float64
	}{
		"never":                         {1000, 9},
		"between the second and third":  {3, 27}, // and never again
		"between the third and fourth":  {9, 9},  // not seen
		"between all that there may be": {0.5, 9},
	}
	for name, c := range cases {
		w := newWorld(t, "pasha", unit())
		w.end = stepwise(c.flips)
		w.play(500, 4)
		if got := promotions(t, w.study.Trials); got != c.want {
			t.Errorf("%s: the largest resource is %g, want %g", name, got, c.want)
		}
	}
}

// Points whose curves cross and cross back are equal to PASHA, as far as they
// are apart at the end.
func TestPASHATakesNoiseForWhatItIs(t *testing.T) {
	w := newWorld(t, "pasha", unit())
	value := func(t suggest.Trial, step int64) float64 {
		return math.Floor(4*t.Point[0].Float()) + 0.1*rng.New(3, "noise", 1000*t.Number+int(step), "step").Float64()
	}
	w.end = func(t suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, value(t, int64(t.Resource)) }
	for len(w.study.Trials) < 500 {
		w.ask(4 - len(w.running))
		w.finish()
		for i := range w.study.Trials {
			trial := &w.study.Trials[i]
			for step := int64(1); step <= int64(trial.Resource) && len(trial.Curve) < int(trial.Resource); step++ {
				trial.Curve = append(trial.Curve, suggest.Sample{Step: step, Value: value(*trial, step)})
			}
		}
	}
	if got := promotions(t, w.study.Trials); got != 9 {
		t.Errorf("the largest resource is %g, want 9: all changes of order are noise", got)
	}
}

// In its second round, DEHB evolves at each resource, and a trial of a larger
// resource is no promotion.
func TestDEHBEvolvesInTheSecondRound(t *testing.T) {
	w := newWorld(t, "dehb", unit(), suggest.Setting{Name: "r_max", Value: "9"})
	w.play(22+22, 1)
	want := map[string]int{
		"bracket 0: 1": 9, "bracket 0: 3": 3, "bracket 0: 9": 1, "bracket 1: 3": 5, "bracket 1: 9": 1, "bracket 2: 9": 3,
		"bracket 3: 1": 9, "bracket 3: 3": 3, "bracket 3: 9": 1, "bracket 4: 3": 5, "bracket 4: 9": 1, "bracket 5: 9": 3,
	}
	if diff := cmp.Diff(want, table(w.study.Trials)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, trial := range w.study.Trials {
		_, promoted := trial.Meta["parent"]
		first := slices.Contains([]string{"0", "1", "2"}, trial.Meta["bracket"])
		if rung := trial.Meta["rung"]; promoted != (first && rung != "0") {
			t.Errorf("trial %d, %v, is a promotion: %v", trial.Number, trial.Meta, promoted)
		}
		if slot, err := strconv.Atoi(trial.Meta["slot"]); err != nil || slot < 0 || slot >= 9 {
			t.Errorf("trial %d has the slot %q", trial.Number, trial.Meta["slot"])
		}
	}
}

// Evolution comes nearer to the best point than random search does.
func TestDEHBConverges(t *testing.T) {
	specs := []suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "y", Kind: suggest.Double, Min: "0", Max: "1"},
		{Name: "z", Kind: suggest.Double, Min: "0", Max: "1"}, {Name: "c", Kind: suggest.Categorical, List: []string{"a", "b", "c"}},
	}
	far := func(t suggest.Trial) (suggest.State, float64) {
		sum := 0.0
		for _, v := range t.Point[:3] {
			sum += (v.Float() - 0.7) * (v.Float() - 0.7)
		}
		if t.Point[3].String() != "b" {
			sum += 0.1
		}
		return suggest.Succeeded, sum
	}
	best := func(name string) float64 {
		w := newWorld(t, name, specs, suggest.Setting{Name: "r_max", Value: "9"})
		w.end = far
		w.play(400, 4)
		least := math.Inf(1)
		for _, trial := range w.study.Trials {
			least = min(least, trial.Values[0])
		}
		return least
	}
	if evolved, random := best("dehb"), best("hyperband"); !(evolved < random/3) {
		t.Errorf("dehb comes to %v, hyperband to %v", evolved, random)
	}
}
