package algorithm_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// anew builds the algorithm again for each question, as if its process had been
// restarted.
type anew struct {
	build func() suggest.Algorithm
}

func (a anew) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	return a.build().Suggest(ctx, s, n)
}

// restartsDoNotShow plays the same study with one algorithm and with a new one
// for each question.
func restartsDoNotShow(t *testing.T, r propose.Registration) {
	for _, name := range []string{"mixed", "tree", "small"} {
		for _, parallel := range []int{1, 8} {
			a, space := build(t, r, spaces()[name])
			specs := spaces()[name]
			again := anew{build: func() suggest.Algorithm { b, _ := build(t, r, specs); return b }}
			want := played(t, a, space, parallel)
			if got := played(t, again, space, parallel); !slices.Equal(got, want) {
				t.Errorf("%s, %d at a time: %s", name, parallel, firstDifference(got, want))
			}
		}
	}
}

// changesAreSeen edits a study as no service should, but as a program might, and
// asks one algorithm, which saw all that came before, and a new one.
func changesAreSeen(t *testing.T, r propose.Registration) {
	for _, name := range []string{"mixed", "tree"} {
		a, space := build(t, r, spaces()[name])
		s := studyOf(t, a, space, 1, 20)
		changes := []struct {
			name string
			edit func(trial *suggest.Trial)
		}{
			{"nothing", func(*suggest.Trial) {}},
			{"a result that is best", func(trial *suggest.Trial) { trial.State, trial.Values = suggest.Succeeded, []float64{-1} }},
			{"a failure", func(trial *suggest.Trial) { trial.State, trial.Values = suggest.Failed, nil }},
			{"it runs again", func(trial *suggest.Trial) { trial.State, trial.Values = suggest.Running, nil }},
			{"another point", func(trial *suggest.Trial) { trial.Point = s.Trials[0].Point }},
			{"no metadata", func(trial *suggest.Trial) { trial.Meta = nil }},
			{"a curve", func(trial *suggest.Trial) { trial.Curve = []suggest.Sample{{Step: 1, Value: 3}} }},
		}
		for i, c := range changes {
			s.Update(s.Trials[2*i].Number, c.edit)
			if c.name == "no metadata" {
				s.Trials = slices.Delete(slices.Clone(s.Trials), 3, 5)
			}
			b, _ := build(t, r, spaces()[name])
			if got, want := lines(space, ask(t, a, s, 2)), lines(space, ask(t, b, s, 2)); !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %s, a new one says %s", name, c.name, got, want)
			}
		}
	}
}

// processorsDoNotShow plays the same study with one, 8 and 32 processors.
func processorsDoNotShow(t *testing.T, r propose.Registration) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	a, space := build(t, r, mixed())
	want := played(t, a, space, 4)
	for _, processors := range []int{8, 32} {
		runtime.GOMAXPROCS(processors)
		b, _ := build(t, r, mixed())
		if got := played(t, b, space, 4); !slices.Equal(got, want) {
			t.Errorf("%d processors: %s", processors, firstDifference(got, want))
		}
	}
}

// played gives the points of 40 trials as text.
func played(t *testing.T, a suggest.Algorithm, space suggest.Space, parallel int) []string {
	t.Helper()
	p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 17), Parallel: parallel, Objective: bowl(space)}
	if err := p.Play(t.Context(), 40); err != nil && !errors.Is(err, suggest.ErrExhausted) {
		t.Fatal(err)
	}
	out := make([]string, len(p.Study.Trials))
	for i, trial := range p.Study.Trials {
		out[i] = fmt.Sprint(space.Assignments(trial.Point), trial.Resource)
	}
	return out
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("trial %d is %s, want %s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d trials, want %d", len(got), len(want))
}

// maximizeMirrorsMinimize turns the direction and the sign of all values around.
func maximizeMirrorsMinimize(t *testing.T, r propose.Registration) {
	for _, name := range []string{"mixed", "tree"} {
		a, space := build(t, r, spaces()[name])
		s := studyOf(t, a, space, 21, 25)
		want := lines(space, ask(t, a, s, 3))
		b, _ := build(t, r, spaces()[name])
		s.Objectives = []suggest.Objective{{Name: "score", Direction: suggest.Maximize}}
		s = suggesttest.Edited(s, func(_ int, trial *suggest.Trial) {
			if len(trial.Values) > 0 {
				trial.Values = []float64{-trial.Values[0]}
			}
		})
		if got := lines(space, ask(t, b, s, 3)); !slices.Equal(got, want) {
			t.Errorf("%s: maximize gives %v, minimize %v", name, got, want)
		}
	}
}

// batchesHaveNoDuplicates asks for 20 points at once, at the start and later.
func batchesHaveNoDuplicates(t *testing.T, r propose.Registration) {
	if r.Repeats {
		t.Skip("points come again on purpose")
	}
	for _, name := range []string{"one double", "mixed", "small", "tree", "huge and finite"} {
		a, space := build(t, r, spaces()[name])
		for _, already := range []int{0, 25} {
			s := studyOf(t, a, space, 9, already)
			seen := map[string]bool{}
			for _, trial := range s.Trials {
				key, _ := space.Key(trial.Point)
				seen[key] = true
			}
			for i, p := range ask(t, a, s, 20) {
				key, _ := space.Key(p.Point)
				if seen[fmt.Sprint(p.Resource, key)] || p.Resource == 0 && seen[key] {
					t.Errorf("%s, after %d trials: proposal %d, %v, came before", name, already, i, space.Assignments(p.Point))
				}
				seen[key], seen[fmt.Sprint(p.Resource, key)] = true, true
			}
		}
	}
}

// deadlinesAreKept gives no time at all: there must be an answer all the same.
func deadlinesAreKept(t *testing.T, r propose.Registration) {
	for _, name := range []string{"mixed", "small", "tree"} {
		a, space := build(t, r, spaces()[name])
		for _, already := range []int{0, 30} {
			s := studyOf(t, a, space, 9, already)
			ctx, cancel := context.WithDeadline(t.Context(), time.Now())
			got, err := a.Suggest(ctx, s, 1)
			cancel()
			if err != nil || len(got) != 1 || !space.Contains(got[0].Point) {
				t.Errorf("%s, after %d trials: %v, %v", name, already, got, err)
			}
		}
	}
}

// hardStudiesAreSurvived plays studies that are hard on the arithmetic.
func hardStudiesAreSurvived(t *testing.T, r propose.Registration) {
	wide := make([]suggest.ParameterSpec, 200)
	for i := range wide {
		wide[i] = suggest.ParameterSpec{Name: fmt.Sprintf("x%03d", i), Kind: suggest.Double, Min: "0", Max: "1"}
	}
	cases := map[string]struct {
		specs []suggest.ParameterSpec
		loss  func(number int, u []float64) float64
	}{
		"200 parameters":        {wide, func(_ int, u []float64) float64 { return sumOfSquares(u) }},
		"40 % of space crashes": {mixed(), func(_ int, u []float64) float64 { return crash(u[0] < 0.4, sumOfSquares(u)) }},
		"all but one crash":     {mixed(), func(n int, u []float64) float64 { return crash(n != 3, sumOfSquares(u)) }},
		"huge values":           {mixed(), func(_ int, u []float64) float64 { return 1e300 * (u[0] - 0.5) }},
		"tiny differences":      {mixed(), func(_ int, u []float64) float64 { return 1e9 + 1e-7*u[0] }},
		"a few values only":     {mixed(), func(_ int, u []float64) float64 { return math.Floor(3 * u[0]) }},
		"one outlier":           {mixed(), func(n int, u []float64) float64 { return sumOfSquares(u) + 1e290*float64(n/7%2) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, space := build(t, r, c.specs)
			p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 13), Parallel: 2}
			p.Objective = func(number int, point suggest.Point) float64 {
				u, ok := space.Encode(point)
				if !ok {
					t.Errorf("trial %d: %v is not in the space", number, point)
					return math.NaN()
				}
				return c.loss(number, u)
			}
			if err := p.Play(t.Context(), 30); err != nil && !errors.Is(err, suggest.ErrExhausted) {
				t.Error(err)
			}
		})
	}
}

func crash(crashes bool, otherwise float64) float64 {
	if crashes {
		return math.NaN()
	}
	return otherwise
}

func sumOfSquares(u []float64) float64 {
	sum := 0.0
	for _, x := range u {
		sum += x * x
	}
	return sum
}
