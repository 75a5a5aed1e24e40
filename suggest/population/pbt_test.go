package population

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// trainer simulates training whose state is carried on through parents, and
// runs several trials at once.
type trainer struct {
	algorithm suggest.Algorithm
	study     suggest.Study
	parallel  int
	// train gives the state after the trial, from that of its parent; nil at
	// the start of training.
	train func(t *suggest.Trial, parent []float64) (state []float64)
	// loss of a state; NaN fails the trial.
	loss   func(t *suggest.Trial, state []float64) float64
	states map[int][]float64
}

// run makes n trials, which end in the order in which they began.
func (r *trainer) run(t testing.TB, n int) {
	t.Helper()
	r.states = map[int][]float64{}
	running := 0
	for len(r.study.Trials) < n || running > 0 {
		if want := min(r.parallel-running, n-len(r.study.Trials)); want > 0 {
			got, err := r.algorithm.Suggest(t.Context(), r.study, want)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 && running == 0 {
				t.Fatal("nothing runs and nothing is proposed")
			}
			for _, p := range got {
				r.study.Trials = append(r.study.Trials, &suggest.Trial{Number: len(r.study.Trials), Point: p.Point, Meta: p.Meta, Resource: p.Resource})
			}
			running += len(got)
		}
		r.finish(r.study.Trials[len(r.study.Trials)-running])
		running--
	}
}

func (r *trainer) finish(t *suggest.Trial) {
	var parent []float64
	if n, err := strconv.Atoi(t.Meta[suggest.MetaParent]); err == nil {
		parent = r.states[n]
	}
	r.states[t.Number] = r.train(t, parent)
	r.study.Update(t.Number, func(t *suggest.Trial) {
		if loss := r.loss(t, r.states[t.Number]); math.IsNaN(loss) {
			t.State = suggest.Failed
		} else {
			t.State, t.Values = suggest.Succeeded, []float64{loss}
		}
	})
}

// best is the least loss of all trials.
func (r *trainer) best() float64 {
	least := math.Inf(1)
	for _, t := range r.study.Trials {
		if len(t.Values) > 0 {
			least = min(least, t.Values[0])
		}
	}
	return least
}

func newPopulationStudy(t testing.TB, seed uint64, specs ...suggest.ParameterSpec) suggest.Study {
	t.Helper()
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return suggest.Study{Space: space, Seed: seed, Objectives: []suggest.Objective{{Name: "loss"}}}
}

func buildPopulation(t testing.TB, build suggest.New, s suggest.Study, settings ...string) suggest.Algorithm {
	t.Helper()
	var given suggest.Settings
	for i := 0; i < len(settings); i += 2 {
		given = append(given, suggest.Setting{Name: settings[i], Value: settings[i+1]})
	}
	a, err := build(s.Space, given)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var learningRate = suggest.ParameterSpec{Name: "lr", Kind: suggest.Double, Min: "1e-4", Max: "1", Distribution: suggest.LogUniform}

// schedule is training whose best learning rate falls by a factor of 1000 over
// 20 generations: progress in each is a bell in the logarithm of the rate.
func schedule(t *suggest.Trial, parent []float64) []float64 {
	progress, generation := 0.0, 0.0
	if parent != nil {
		progress, generation = parent[0], parent[1]
	}
	off := math.Log10(t.Point[0].Float()) - (-0.3 - 3*generation/20)
	return []float64{progress + math.Exp(-off*off/(2*0.3*0.3)), generation + 1}
}

func TestReplacedMembersTakeOverFromTheBest(t *testing.T) {
	s := newPopulationStudy(t, 1, learningRate)
	r := trainer{
		algorithm: buildPopulation(t, PBT().New, s, nPopulation, "8", intervalSetting, "5"), study: s, parallel: 1,
		train: schedule, loss: func(_ *suggest.Trial, state []float64) float64 { return -state[0] },
	}
	r.run(t, 80)
	replaced, unchanged := 0, 0
	for _, trial := range r.study.Trials {
		if trial.Resource != 5 {
			t.Errorf("trial %d has the resource %v, want 5", trial.Number, trial.Resource)
		}
		generation, _ := strconv.Atoi(trial.Meta[generationMeta])
		text, ok := trial.Meta[suggest.MetaParent]
		if generation == 0 {
			if ok {
				t.Errorf("trial %d of generation 0 has the parent %s", trial.Number, text)
			}
			continue
		}
		number, err := strconv.Atoi(text)
		if err != nil || number >= trial.Number {
			t.Fatalf("trial %d has the parent %q", trial.Number, text)
		}
		parent := r.study.Trials[number]
		if parent.Meta[generationMeta] != strconv.Itoa(generation-1) {
			t.Errorf("trial %d of generation %d has a parent of generation %s", trial.Number, generation, parent.Meta[generationMeta])
		}
		if parent.Meta[memberMeta] == trial.Meta[memberMeta] {
			unchanged++
			if !parent.Point.Equal(trial.Point) {
				t.Errorf("trial %d goes on from its own trial %d with other parameters", trial.Number, number)
			}
		} else {
			replaced++
			if parent.Point.Equal(trial.Point) {
				t.Errorf("trial %d explores, with the parameters of its parent", trial.Number)
			}
		}
	}
	if want := 9 * 2; replaced != want || unchanged != 9*6 {
		t.Errorf("%d were replaced and %d went on, want %d and %d", replaced, unchanged, want, 9*6)
	}
}

func TestFailedTrialsAreRepeatedThenReplaced(t *testing.T) {
	s := newPopulationStudy(t, 1, learningRate)
	// Member 2 fails in generation 1, as long as it goes on from itself.
	r := trainer{
		algorithm: buildPopulation(t, PBT().New, s, nPopulation, "6", maxFailures, "3"), study: s, parallel: 1, train: schedule,
		loss: func(trial *suggest.Trial, state []float64) float64 {
			if trial.Meta[memberMeta] == "2" && trial.Meta[generationMeta] == "1" && trial.Meta[suggest.MetaParent] == "2" {
				return math.NaN()
			}
			return float64(trial.Point[0].Float()) // the highest rate is replaced, and it is not member 2's
		},
	}
	r.run(t, 25)
	var parents []string
	for _, trial := range r.study.Trials {
		if trial.Meta[memberMeta] == "2" && trial.Meta[generationMeta] == "1" {
			parents = append(parents, trial.Meta[suggest.MetaParent])
		}
	}
	if len(parents) != 4 || !slices.Equal(parents[:3], []string{"2", "2", "2"}) || parents[3] == "2" {
		t.Errorf("the parents of member 2 in generation 1 are %v, want 2 three times and then another", parents)
	}
	counts := map[string]int{}
	for _, trial := range r.study.Trials {
		counts[trial.Meta[memberMeta]]++
	}
	if len(counts) != 6 || slices.Min(slices.Collect(maps.Values(counts))) < 3 {
		t.Errorf("trials of each member: %v; a failure blocks others", counts)
	}
}

func TestDivergedMembersAreReplacedAtOnce(t *testing.T) {
	s := newPopulationStudy(t, 1, learningRate)
	a := buildPopulation(t, PBT().New, s, nPopulation, "4")
	for i := range 4 {
		s.Trials = append(s.Trials, member(s.Space, i, i, 0, "", float64(i)))
	}
	s.Trials = append(s.Trials, member(s.Space, 4, 0, 1, "0", math.NaN()))
	got, err := a.Suggest(t.Context(), s, 4)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(got, func(p suggest.Proposal) bool { return p.Meta[memberMeta] == "0" })
	if i < 0 || got[i].Meta[generationMeta] != "1" || got[i].Meta[suggest.MetaParent] == "0" || !strings.Contains(got[i].Why, "diverged") {
		t.Errorf("got %+v, want a replacement of member 0 in generation 1", got)
	}
}

// member is a succeeded trial of a population.
func member(space suggest.Space, number, member, generation int, parent string, value float64) *suggest.Trial {
	m := suggest.Meta{memberMeta: strconv.Itoa(member), generationMeta: strconv.Itoa(generation)}
	if parent != "" {
		m[suggest.MetaParent] = parent
	}
	u := make([]float64, space.Len())
	for i := range u {
		u[i] = (float64(member) + 0.5) / 10
	}
	return &suggest.Trial{Number: number, Point: space.Decode(u), State: suggest.Succeeded, Values: []float64{value}, Meta: m}
}

func TestMembersWaitForHalfOfTheOthers(t *testing.T) {
	s := newPopulationStudy(t, 1, learningRate)
	a := buildPopulation(t, PBT().New, s, nPopulation, "6")
	for i := range 6 {
		s.Trials = append(s.Trials, member(s.Space, i, i, 0, "", float64(i)))
	}
	ask := func(n int) []suggest.Proposal {
		got, err := a.Suggest(t.Context(), s, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got {
			s.Trials = append(s.Trials, &suggest.Trial{Number: s.NextNumber(), Point: p.Point, Meta: p.Meta})
		}
		return got
	}
	if got := ask(20); len(got) != 6 {
		t.Fatalf("got %d proposals for generation 1, want 6", len(got))
	}
	end := func(i int) {
		s.Update(i, func(t *suggest.Trial) { t.State, t.Values = suggest.Succeeded, []float64{-float64(i)} })
	}
	end(6)
	end(7)
	if got := ask(20); len(got) != 0 {
		t.Errorf("with 2 of 6 results there are %d proposals, want none", len(got))
	}
	end(8)
	if got := ask(20); len(got) != 3 {
		t.Errorf("with 3 of 6 results there are %d proposals, want 3", len(got))
	}
}

func TestGenerationsEnd(t *testing.T) {
	s := newPopulationStudy(t, 1, learningRate)
	r := trainer{
		algorithm: buildPopulation(t, PBT().New, s, nPopulation, "5", nGenerations, "3"), study: s, parallel: 2,
		train: schedule, loss: func(_ *suggest.Trial, state []float64) float64 { return -state[0] },
	}
	r.run(t, 15)
	if got, err := r.algorithm.Suggest(t.Context(), r.study, 1); !errors.Is(err, suggest.ErrExhausted) || len(got) > 0 {
		t.Errorf("got %v, %v after 3 generations of 5, want %v", got, err, suggest.ErrExhausted)
	}
}

func TestSomeExploreAmongEquals(t *testing.T) {
	s := newPopulationStudy(t, 1, learningRate)
	r := trainer{
		algorithm: buildPopulation(t, PBT().New, s, nPopulation, "5"), study: s, parallel: 1,
		train: schedule, loss: func(*suggest.Trial, []float64) float64 { return 7 },
	}
	r.run(t, 30)
	for _, trial := range r.study.Trials[5:] {
		itself := trial.Meta[suggest.MetaParent] == strconv.Itoa(trial.Number-5)
		if last := trial.Number%5 == 4; itself == last {
			t.Errorf("trial %d goes on from trial %s", trial.Number, trial.Meta[suggest.MetaParent])
		}
	}
}

func TestMaximizeMirrorsMinimizeInPopulations(t *testing.T) {
	trials := func(build suggest.New, direction suggest.Direction, sign float64) []string {
		s := newPopulationStudy(t, 5, learningRate)
		s.Objectives[0].Direction = direction
		r := trainer{
			algorithm: buildPopulation(t, build, s, nPopulation, "6"), study: s, parallel: 4,
			train: schedule, loss: func(_ *suggest.Trial, state []float64) float64 { return -sign * state[0] },
		}
		r.run(t, 60)
		var out []string
		for _, trial := range r.study.Trials {
			out = append(out, fmt.Sprint(trial.Point, trial.Meta))
		}
		return out
	}
	for name, build := range map[string]suggest.New{"pb2": PB2().New, "pbt": PBT().New} {
		if diff := cmp.Diff(trials(build, suggest.Minimize, 1), trials(build, suggest.Maximize, -1)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestPopulationOfStrangers(t *testing.T) {
	// Trials without Meta are members of generation 0.
	s := newPopulationStudy(t, 1, learningRate)
	a := buildPopulation(t, PBT().New, s, nPopulation, "4")
	for i := range 6 {
		trial := member(s.Space, i, i, 0, "", float64(i))
		trial.Meta = suggest.Meta{memberMeta: "x", generationMeta: "99999999999"}
		s.Trials = append(s.Trials, trial)
	}
	got, err := a.Suggest(context.Background(), s, 4)
	if err != nil {
		t.Fatal(err)
	}
	var parents []string
	for _, p := range got {
		parents = append(parents, p.Meta[suggest.MetaParent])
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "0"}, parents); diff != "" {
		t.Errorf("the first four go on, the worst of them from the best:\n%s", diff)
	}
}

func TestPopulationSettingsAreChecked(t *testing.T) {
	space := newPopulationStudy(t, 1, learningRate).Space
	for name, values := range map[string][]string{
		nPopulation: {"1", "2.5", "10001"}, truncation: {"-0.1", "1.1"}, resampling: {"2"}, trialDir: {"checkpoints"},
		intervalSetting: {"-1"}, nGenerations: {"-1"}, maxFailures: {"0"},
	} {
		for _, value := range values {
			_, err := PBT().New(space, suggest.Settings{{Name: name, Value: value}})
			var wrong *suggest.SettingError
			if !errors.As(err, &wrong) || wrong.Name != name {
				t.Errorf("%s = %s: got %v", name, value, err)
			}
		}
	}
	katib := suggest.Settings{
		{Name: trialDir, Value: "/var/log/katib/checkpoints/"}, {Name: nPopulation, Value: "40"},
		{Name: truncation, Value: "0.2"}, {Name: resampling, Value: "0.3"},
	}
	if _, err := PBT().New(space, katib); err != nil {
		t.Errorf("Katib's settings: %v", err)
	}
}
