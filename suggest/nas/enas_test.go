package nas

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/design"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// architectures is a space of layers that have one of some operations, and skip
// connections between them.
func architectures(t testing.TB, layers, operations int) suggest.Space {
	t.Helper()
	var specs []suggest.ParameterSpec
	var list []string
	for k := range operations {
		list = append(list, "op"+strconv.Itoa(k))
	}
	for l := range layers {
		specs = append(specs, suggest.ParameterSpec{Name: fmt.Sprintf("layer_%d", l), Kind: suggest.Categorical, List: list})
		for k := range l {
			specs = append(specs, suggest.ParameterSpec{Name: fmt.Sprintf("layer_%d_skip_%d", l, k), Kind: suggest.Categorical, List: []string{"0", "1"}})
		}
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// accuracy of an architecture: each operation has a value of its own and one
// with the operation before it, each skip connection has a small one, and there
// is noise. All are drawn by the seed.
func accuracy(space suggest.Space, seed uint64) func(number int, p suggest.Point) float64 {
	key := rng.NewKey(seed, "accuracy")
	value := func(words ...int) float64 {
		k := key
		for _, w := range words {
			k = k.At(uint64(w))
		}
		return k.Stream(0).NormFloat64()
	}
	return func(number int, p suggest.Point) float64 {
		sum, before := 0.0, 0
		for i, v := range p {
			index, _ := v.Index()
			if count, _ := space.At(i).Count(); count == 2 {
				sum += 0.3 * value(1, i, int(index))
				continue
			}
			sum += value(2, i, int(index)) + 0.7*value(3, i, before, int(index))
			before = int(index)
		}
		return sum + 0.1*value(4, number)
	}
}

// bestOf is the highest accuracy in n trials.
func bestOf(t testing.TB, build suggest.New, space suggest.Space, seed uint64, n int, settings ...suggest.Setting) float64 {
	t.Helper()
	a, err := build(space, settings)
	if err != nil {
		t.Fatal(err)
	}
	measure := accuracy(space, seed)
	s := suggest.Study{Space: space, Seed: seed, Objectives: []suggest.Objective{{Direction: suggest.Maximize}}}
	best := math.Inf(-1)
	for i := range n {
		got, err := a.Suggest(t.Context(), s, 1)
		if errors.Is(err, suggest.ErrExhausted) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		value := measure(i, got[0].Point)
		best = max(best, value)
		s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: got[0].Point, State: suggest.Succeeded, Values: []float64{value}})
	}
	return best
}

func TestENASBeatsRandomSearch(t *testing.T) {
	space := architectures(t, 5, 6)
	var gains []float64
	for seed := range uint64(30) {
		gains = append(gains, bestOf(t, ENAS().New, space, seed, 120)-bestOf(t, design.NewRandom, space, seed, 120))
	}
	suggesttest.HoldsBetter(t, gains)
}

func TestENASCreditsTheChoicesThatWereMade(t *testing.T) {
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "units", Kind: suggest.Int, Min: "1", Max: "50", Distribution: suggest.LogUniform, When: &suggest.When{Parameter: "model", In: []string{"a"}}},
		{Name: "model", Kind: suggest.Categorical, List: []string{"a", "b"}},
		{Name: "rate", Kind: suggest.Double, Min: "1e-3", Max: "1", Distribution: suggest.LogUniform},
		{Name: "layers", Kind: suggest.Int, Min: "1", Max: "5"},
	})
	if err != nil {
		t.Fatal(err)
	}
	built, err := ENAS().New(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := built.(*enas)
	net := a.newController(1).net
	stream := rng.NewKey(1, "test").Stream(0)
	for i := range net.Weights {
		net.Weights[i] += stream.NormFloat64()
	}
	for range 200 {
		p, chance := a.sample(net, stream)
		if !space.Contains(p) {
			t.Fatalf("%v is not in the space", space.Assignments(p))
		}
		if got := net.LogProbability(a.choices(p)); math.Abs(got-chance) > 1e-9 {
			t.Fatalf("%v was drawn with the probability exp(%v) and is credited with exp(%v)", space.Assignments(p), chance, got)
		}
	}
}

func TestENASKeepsTheWantedRateOfSkips(t *testing.T) {
	space := architectures(t, 4, 3)
	for _, target := range []string{"0.2", "0.8"} {
		a, err := ENAS().New(space, suggest.Settings{{Name: "controller_skip_target", Value: target}, {Name: "controller_skip_weight", Value: "100"}})
		if err != nil {
			t.Fatal(err)
		}
		s := suggest.Study{Space: space, Objectives: []suggest.Objective{{}}}
		skips, of := 0.0, 0.0
		for i := range 60 {
			got, err := a.Suggest(t.Context(), s, 1)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range got[0].Point {
				if count, _ := space.At(k).Count(); count == 2 && i >= 20 {
					of++
					if v.String() == "1" {
						skips++
					}
				}
			}
			s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: got[0].Point, State: suggest.Succeeded, Values: []float64{1}})
		}
		if want, _ := strconv.ParseFloat(target, 64); math.Abs(skips/of-want) > 0.1 {
			t.Errorf("%.2f of the skip connections are made, want %v", skips/of, want)
		}
	}
}

func TestENASForgetsWhatALateResultChanges(t *testing.T) {
	space := architectures(t, 3, 4)
	measure := accuracy(space, 1)
	var trials []*suggest.Trial
	stream := rng.NewKey(2, "test").Stream(0)
	for i := range 40 {
		u := make([]float64, space.Len())
		for k := range u {
			u[k] = stream.Float64()
		}
		p := space.Decode(u)
		trials = append(trials, &suggest.Trial{Number: i, Point: p, State: suggest.Succeeded, Values: []float64{measure(i, p)}})
	}
	one, err := ENAS().New(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(a suggest.Algorithm, trials ...*suggest.Trial) string {
		s := suggest.Study{Space: space, Objectives: []suggest.Objective{{Direction: suggest.Maximize}}, Trials: trials}
		got, err := a.Suggest(t.Context(), s, 3)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(got)
	}
	late := append([]*suggest.Trial(nil), trials...)
	late[5] = &suggest.Trial{Number: 5, Point: trials[5].Point, State: suggest.Running}
	for _, history := range [][]*suggest.Trial{late[:20], late, trials, trials[:30], trials} {
		fresh, err := ENAS().New(space, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := ask(one, history...), ask(fresh, history...); got != want {
			t.Errorf("after %d trials a fresh controller proposes\n%s\nand one that saw others\n%s", len(history), want, got)
		}
	}
}

func TestENASStaysBoundedInLongStudies(t *testing.T) {
	space := architectures(t, 2, 3)
	built, err := ENAS().New(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := built.(*enas)
	s := suggest.Study{Space: space, Objectives: []suggest.Objective{{}}}
	p := space.First()
	for i := range 2*enasBlock + 7 {
		s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: p, State: suggest.Succeeded, Values: []float64{float64(i % 3)}})
		p = space.Successor(p)
	}
	if _, complete := a.learn(t.Context(), s); !complete || len(a.cache.train) != enasBlock+7 || len(a.cache.kept) > enasSnapshots {
		t.Errorf("it learns from %d trials and keeps %d states", len(a.cache.train), len(a.cache.kept))
	}
}

func TestRewardsAreRanks(t *testing.T) {
	inf := math.Inf(1)
	got := rewardsOf([]learned{{loss: 3}, {loss: -1}, {class: math.MaxInt, loss: inf, violation: inf}, {class: int(history.Infeasible), loss: -9, violation: 1}, {loss: 3}})
	if diff := cmp.Diff([]float64{0.2, 0.8, -0.8, -0.4, 0.2}, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Error(diff)
	}
	if got := rewardsOf([]learned{{loss: 1e300}}); got[0] != 0 {
		t.Errorf("a single trial has the reward %v, want 0", got[0])
	}
}

func TestTheBestRewardsAreATenth(t *testing.T) {
	rewards := make([]float64, 200)
	for i := range rewards {
		rewards[i] = float64(i%50) / 50
	}
	got := bestOfRewards(rewards)
	want := []int{199, 149, 99, 49, 198}
	if diff := cmp.Diff(want, got[:5]); diff != "" || len(got) != 20 {
		t.Errorf("%d are the best, and first\n%s", len(got), diff)
	}
	if got := bestOfRewards(rewards[:3]); len(got) != 3 {
		t.Errorf("of 3 trials %d are the best, want 3", len(got))
	}
}

func TestENASSettings(t *testing.T) {
	space := architectures(t, 2, 2)
	katib := suggest.Settings{
		{Name: "controller_hidden_size", Value: "64"}, {Name: "controller_temperature", Value: "None"}, {Name: "controller_tanh_const", Value: "2.25"},
		{Name: "controller_entropy_weight", Value: "None"}, {Name: "controller_baseline_decay", Value: "0.999"}, {Name: "controller_learning_rate", Value: "5e-5"},
		{Name: "controller_skip_target", Value: "0.4"}, {Name: "controller_skip_weight", Value: "None"}, {Name: "controller_train_steps", Value: "50"},
		{Name: "controller_log_every_steps", Value: "10"},
	}
	a, err := ENAS().New(space, katib)
	if err != nil {
		t.Fatal(err)
	}
	if e := a.(*enas).enasSettings; e.temperature != 0 || e.tanhConst != 2.25 || e.entropyWeight != 0 || e.skipWeight != 0 || e.trainSteps != 50 {
		t.Errorf("the settings are %+v", e)
	}
	for _, s := range []suggest.Setting{
		{Name: "controller_hidden_size", Value: "None"}, {Name: "controller_baseline_decay", Value: "0"}, {Name: "controller_baseline_decay", Value: "1.1"},
		{Name: "controller_train_steps", Value: "0"}, {Name: "controller_skip_weight", Value: "0"},
	} {
		var wrong *suggest.SettingError
		if _, err := ENAS().New(space, suggest.Settings{s}); !errors.As(err, &wrong) || wrong.Name != s.Name {
			t.Errorf("%v: got %v", s, err)
		}
	}
}

// The value of a trial that was stopped early is one of less training, and does
// not compare with those of whole trials.
func TestENASRanksStoppedTrialsBehind(t *testing.T) {
	space := architectures(t, 2, 2)
	a, err := ENAS().New(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}}
	for i, state := range []suggest.State{suggest.Succeeded, suggest.Pruned, suggest.Failed, suggest.Pruned, suggest.Succeeded} {
		trial := &suggest.Trial{Number: i, State: state, Point: space.First()}
		if state != suggest.Failed {
			trial.Values = []float64{[]float64{5, 1, 0, 2, 7}[i]}
		}
		s.Trials = append(s.Trials, trial)
	}
	got := rewardsOf(a.(*enas).finished(s))
	if want := []float64{0.8, 0, -0.8, -0.4, 0.4}; !cmp.Equal(want, got, cmpopts.EquateApprox(0, 1e-12)) {
		t.Errorf("rewards %v, want %v", got, want)
	}
}
