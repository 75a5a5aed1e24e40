package bayes

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/suggest"
)

func unitCube(t testing.TB, d int) suggest.Space {
	t.Helper()
	specs := make([]suggest.ParameterSpec, d)
	for i := range specs {
		specs[i] = suggest.ParameterSpec{Name: fmt.Sprint("x", i), Kind: suggest.Double, Min: "0", Max: "1"}
	}
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func bayesian(t testing.TB, space suggest.Space, settings ...suggest.Setting) *optimizer {
	t.Helper()
	a, err := New(space, settings)
	if err != nil {
		t.Fatal(err)
	}
	return a.(*optimizer)
}

// tell appends what a trial of the proposal measured.
func tell(s *suggest.Study, p suggest.Proposal, values ...float64) {
	trial := &suggest.Trial{Number: s.NextNumber(), Point: p.Point, Meta: p.Meta, State: suggest.Succeeded, Values: values}
	if len(values) == 0 {
		trial.State = suggest.Failed
	}
	s.Trials = append(s.Trials, trial)
}

func coordinates(p suggest.Point) []float64 {
	x := make([]float64, len(p))
	for i, v := range p {
		x[i] = v.Float()
	}
	return x
}

// played runs n trials in sequence; measure gives no values for a failure.
func playedBy(t testing.TB, a suggest.Algorithm, s *suggest.Study, n int, measure func(x []float64) []float64) {
	t.Helper()
	for range n {
		got, err := a.Suggest(t.Context(), *s, 1)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		tell(s, got[0], measure(coordinates(got[0].Point))...)
	}
}

func bowlAt(centre float64) func(x []float64) []float64 {
	return func(x []float64) []float64 {
		sum := 0.0
		for _, v := range x {
			sum += (v - centre) * (v - centre)
		}
		return []float64{sum}
	}
}

func lowest(s suggest.Study) float64 {
	best := math.Inf(1)
	for _, t := range s.Trials {
		if len(t.Values) > 0 {
			best = min(best, t.Values[0])
		}
	}
	return best
}

func newStudyOf(space suggest.Space, seed uint64, objectives int) suggest.Study {
	return suggest.Study{Space: space, Seed: seed, Objectives: make([]suggest.Objective, objectives)}
}

func TestBayesianFindsTheBottom(t *testing.T) {
	space := unitCube(t, 4)
	for seed := range uint64(3) {
		s := newStudyOf(space, seed, 1)
		playedBy(t, bayesian(t, space), &s, 40, bowlAt(0.37))
		if best := lowest(s); best > 1e-4 { // random search gets 0.02
			t.Errorf("seed %d: the best of 40 is %v", seed, best)
		}
	}
}

func TestBayesianAvoidsWhatFails(t *testing.T) {
	const seeds = 16
	space := unitCube(t, 3)
	failed, best := 0.0, 0.0
	for seed := range uint64(seeds) {
		s := newStudyOf(space, seed, 1)
		playedBy(t, bayesian(t, space), &s, 60, func(x []float64) []float64 {
			if x[0] > 0.5 || x[1] > 0.7 { // nearly two thirds of the space
				return nil
			}
			sum := 0.0
			for _, v := range x {
				sum += (v-0.4)*(v-0.4) + 0.05*(1-math.Cos(50*(v-0.4)))
			}
			return []float64{sum}
		})
		for _, trial := range s.Trials[30:] {
			if trial.State == suggest.Failed {
				failed += 1. / seeds
			}
		}
		best += lowest(s) / seeds
	}
	if failed > 12 || best > 0.1 { // 19 at random
		t.Errorf("%v of the last 30 failed in the mean, and the best is %v", failed, best)
	}
}

// Once the bottom is found there is nothing left to improve where trials succeed.
// They must not go where others failed then, of whose loss nothing is known.
func TestBayesianDoesNotGoBackToWhatFails(t *testing.T) {
	const seeds = 4
	space := unitCube(t, 3)
	failed := 0.0
	for seed := range uint64(seeds) {
		s := newStudyOf(space, seed, 1)
		playedBy(t, bayesian(t, space), &s, 50, func(x []float64) []float64 {
			if x[0] > 0.5 {
				return nil
			}
			return bowlAt(0.3)(x)
		})
		for _, trial := range s.Trials[30:] {
			if trial.State == suggest.Failed {
				failed += 1. / seeds
			}
		}
	}
	if failed > 7 { // without the weight of failures 10 or more
		t.Errorf("%v of the last 20 failed in the mean", failed)
	}
}

// Each branch of the tree has numbers of its own; the better one is the one
// with the narrower bottom.
func TestBayesianSearchesTrees(t *testing.T) {
	when := func(branch string) *suggest.When { return &suggest.When{Parameter: "branch", In: []string{branch}} }
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "branch", Kind: suggest.Categorical, List: []string{"a", "b"}},
		{Name: "a1", Kind: suggest.Double, Min: "0", Max: "1", When: when("a")},
		{Name: "a2", Kind: suggest.Double, Min: "0", Max: "1", When: when("a")},
		{Name: "b1", Kind: suggest.Double, Min: "1e-4", Max: "1", Distribution: suggest.LogUniform, When: when("b")},
		{Name: "b2", Kind: suggest.Int, Min: "1", Max: "40", When: when("b")},
		{Name: "common", Kind: suggest.Double, Min: "0", Max: "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newStudyOf(space, 3, 1)
	a := bayesian(t, space)
	for range 60 {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		x := coordinates(got[0].Point)
		loss := (x[5] - 0.3) * (x[5] - 0.3)
		if got[0].Point[0].String() == "a" {
			loss += 0.2 + (x[1]-0.5)*(x[1]-0.5) + (x[2]-0.9)*(x[2]-0.9)
		} else {
			r := math.Log10(x[3]) + 2.5
			loss += r*r + (x[4]-31)*(x[4]-31)/200
		}
		tell(&s, got[0], loss)
	}
	if best := lowest(s); best > 0.01 { // the branch that is easy to begin with has 0.2
		t.Errorf("the best is %v", best)
	}
}

func TestBayesianHoldsConstraints(t *testing.T) {
	space := unitCube(t, 2)
	s := newStudyOf(space, 2, 1)
	s.Constraints = []suggest.Constraint{{Name: "size"}} // at most 0
	a := bayesian(t, space)
	best := math.Inf(1)
	for range 40 {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		x := coordinates(got[0].Point)
		loss, size := x[0]+x[1], 0.25-x[0]*x[1]
		tell(&s, got[0], loss)
		s.Trials[len(s.Trials)-1].Constraints = []float64{1e6 * size}
		if size <= 0 {
			best = min(best, loss)
		}
	}
	if best > 1.02 { // the minimum is 1, at (0.5, 0.5)
		t.Errorf("the best that holds the constraint is %v", best)
	}
}

func TestBayesianLearnsFromOtherStudies(t *testing.T) {
	space := unitCube(t, 5)
	source := newStudyOf(space, 3, 1)
	playedBy(t, bayesian(t, space), &source, 40, func(x []float64) []float64 { return []float64{1000 * bowlAt(0.62)(x)[0]} })
	cold := newStudyOf(space, 4, 1)
	playedBy(t, bayesian(t, space), &cold, 6, bowlAt(0.6))
	warm := newStudyOf(space, 4, 1)
	for _, trial := range source.Trials {
		trial.Meta = suggest.Meta{"study": "source"}
		warm.Warm = append(warm.Warm, trial)
	}
	playedBy(t, bayesian(t, space), &warm, 6, bowlAt(0.6))
	if best := lowest(warm); best > 0.01 || best > lowest(cold)/5 {
		t.Errorf("the best of 6 is %v with the trials of another study and %v without", best, lowest(cold))
	}
}

// Studies that say the opposite do not hide what one says that is like this one.
func TestBayesianWeighsOtherStudies(t *testing.T) {
	space := unitCube(t, 5)
	warm := newStudyOf(space, 4, 1)
	for k, sign := range []float64{1, -1, -1} {
		source := newStudyOf(space, uint64(10+k), 1)
		playedBy(t, bayesian(t, space), &source, 40, func(x []float64) []float64 { return []float64{sign * bowlAt(0.62)(x)[0]} })
		for _, trial := range source.Trials {
			trial.Meta = suggest.Meta{"study": fmt.Sprint(k)}
			warm.Warm = append(warm.Warm, trial)
		}
	}
	playedBy(t, bayesian(t, space), &warm, 10, bowlAt(0.6))
	cold := newStudyOf(space, 4, 1)
	playedBy(t, bayesian(t, space), &cold, 10, bowlAt(0.6))
	if best := lowest(warm); best > 0.01 || best > lowest(cold)/5 {
		t.Errorf("the best of 10 is %v with the trials of other studies and %v without", best, lowest(cold))
	}
}

func TestWeightsOfOtherStudies(t *testing.T) {
	up, down := []float64{-1, -0.5, 0, 0.5, 1}, []float64{1, 0.5, 0, -0.5, -1}
	many := func(x []float64) []float64 { return slices.Repeat(x, 20) }
	cases := map[string]struct {
		means    [][]float64
		outcomes []float64
		want     []float64
	}{
		"without results they are equal":          {[][]float64{{}, {}}, nil, []float64{0.5, 0.5}},
		"one that agrees has all of it":           {[][]float64{many(up), many(down)}, many(up), []float64{1, 0}},
		"one that disagrees has none":             {[][]float64{many(down)}, many(up), []float64{0}},
		"they are no more than one in all":        {[][]float64{many(up), many(up)}, many([]float64{-3, -1.5, 0, 1.5, 3}), []float64{0.5, 0.5}},
		"the sum is shared as the rest fits best": {[][]float64{many(up), many([]float64{1, -0.5, -1, -0.5, 1})}, many([]float64{-0.7, -1.15, -0.8, 0.35, 2.3}), []float64{0.74, 0.26}},
		"one that tells nothing loses nothing":    {[][]float64{many([]float64{0, 0, 0, 0, 0})}, many(up), []float64{1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, weighed(c.means, c.outcomes), cmpopts.EquateApprox(0, 0.05)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Nothing holds the constraints, and next to nothing was measured of them.
func TestBayesianWithoutMeasuredConstraints(t *testing.T) {
	space := unitCube(t, 2)
	for objectives := 1; objectives <= 2; objectives++ {
		s := newStudyOf(space, 2, objectives)
		s.Constraints = make([]suggest.Constraint, 2)
		a := bayesian(t, space)
		playedBy(t, a, &s, 25, func(x []float64) []float64 { return x[:objectives] })
		s.Update(20, func(t *suggest.Trial) { t.Constraints = []float64{1, math.NaN()} })
		got, err := a.Suggest(t.Context(), s, 2)
		if err != nil || len(got) != 2 || got[0].Fallback == "" {
			t.Errorf("%d objectives: %v, %v", objectives, got, err)
		}
	}
}

func TestBayesianFindsTheFront(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 5, 2)
	playedBy(t, bayesian(t, space), &s, 50, func(x []float64) []float64 {
		return []float64{bowlAt(0.2)(x)[0], bowlAt(0.7)(x)[0]}
	})
	// The front is the line from (0.2, ...) to (0.7, ...).
	near := 0
	for _, trial := range s.Trials[20:] {
		x := coordinates(trial.Point)
		mean := (x[0] + x[1] + x[2]) / 3
		off := 0.0
		for _, v := range x {
			off += (v - mean) * (v - mean)
		}
		if off < 0.005 && mean > 0.15 && mean < 0.75 {
			near++
		}
	}
	if near < 10 { // random points: none
		t.Errorf("%d of the last 30 points are near the front", near)
	}
}

func TestBayesianToleratesOddMeta(t *testing.T) {
	space := unitCube(t, 2)
	s := newStudyOf(space, 7, 1)
	playedBy(t, bayesian(t, space), &s, 20, bowlAt(0.4))
	for _, text := range []string{"", "x", "19", "19 ", "19 !!", "-5 AAAAAAAAAA", "19 AAAAAAAAAA", "19 __________", strings.Repeat("9", 99) + " AAAAAAAAAA"} {
		for i := range s.Trials {
			s.Trials[i].Meta = suggest.Meta{"gp.linear": text, "gp.halfrank": text}
		}
		got, err := bayesian(t, space).Suggest(t.Context(), s, 2)
		if err != nil || len(got) != 2 || !space.Contains(got[0].Point) || !space.Contains(got[1].Point) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestEqualRowsAreAveraged(t *testing.T) {
	nan := math.NaN()
	rows := [][]float64{{0.1, nan}, {0.2, 0}, {0.1, nan}, {0.1, 0.5}, {0.1 + 1e-12, nan}}
	s := newSample("test", rows, []float64{1, 5, 2, 7, 6})
	if len(s.Rows) != 3 || !slices.Equal(s.Outcomes, []float64{3, 5, 7}) || !slices.Equal(s.Weights, []float64{1.0 / 3, 1, 1}) {
		t.Errorf("got %v", s)
	}
}
