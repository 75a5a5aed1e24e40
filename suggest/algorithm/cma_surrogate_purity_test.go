package algorithm_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// numbers is a space in which a surrogate is used: numbers of each kind, with a
// condition, and no choices.
func numbers(t testing.TB) suggest.Space {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"},
		{Name: "y", Kind: suggest.Double, Min: "1e-4", Max: "1", Distribution: suggest.LogUniform},
		{Name: "n", Kind: suggest.Int, Min: "1", Max: "4"},
		{Name: "width", Kind: suggest.Int, Min: "1", Max: "1000000"},
		{Name: "depth", Kind: suggest.Int, Min: "1", Max: "50", When: &suggest.When{Parameter: "n", In: []string{"2", "3", "4"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func oneValue(p suggest.Point) []float64 {
	x, y, width := p[0].Float(), math.Log10(p[1].Float()), p[3].Float()/1e6
	return []float64{(x-0.1)*(x-0.1) + (y+2)*(y+2)/16 + (width-x)*(width-x) + math.Abs(p[2].Float()-3)}
}

func guidedStudy(t testing.TB, parallel int) *workers {
	space := numbers(t)
	return &workers{
		algorithm: newAlgorithm(t, "cmaes", space, withSurrogate), parallel: parallel, values: oneValue,
		study: suggest.Study{Space: space, Seed: 3, Objectives: objectives(1, "")},
	}
}

// The contract's spaces for restarts and processors have choices, which
// a surrogate keeps out of.
func TestGuidedAnswersSurviveARestartAtAnyTrial(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, parallel := range []int{1, 6} {
		w, guided := guidedStudy(t, parallel), 0
		w.asked = func(s suggest.Study, n int, got []suggest.Proposal) {
			runtime.GOMAXPROCS(1 + len(s.Trials)%8)
			again, err := newAlgorithm(t, "cmaes", s.Space, withSurrogate).Suggest(t.Context(), s, n)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, again, cmp.Comparer(suggest.Value.Equal)); diff != "" {
				t.Fatalf("after %d trials a fresh process answers otherwise (-old +fresh):\n%s", len(s.Trials), diff)
			}
			for _, p := range got {
				if strings.Contains(p.Why, "most promising") {
					guided++
				}
			}
		}
		if w.play(t, 160); guided < 100 {
			t.Errorf("%d workers: a surrogate picked %d points, want more to look at", parallel, guided)
		}
	}
}

func TestCachesNeverChangeAGuidedAnswer(t *testing.T) {
	w := guidedStudy(t, 4)
	w.play(t, 100)
	stream := rng.NewKey(1, "test", "guided").Stream(0)
	for step := range 100 {
		edit(&w.study, stream)
		if diff := cachedFromFresh(t, "cmaes", w.algorithm, w.study, withSurrogate); diff != "" {
			t.Fatalf("edit %d: a cache changed the answer (-fresh +cached):\n%s", step, diff)
		}
	}
}

// Losses that are hard on the arithmetic neither end the surrogate nor make it
// propose what is not in the space.
func TestSurrogateSurvivesHardLosses(t *testing.T) {
	for name, value := range map[string]func(loss float64, number int) float64{
		"huge":             func(loss float64, _ int) float64 { return (loss - 0.5) * 1e308 },
		"tiny differences": func(loss float64, _ int) float64 { return 1e9 + 1e-7*loss },
		"all equal":        func(float64, int) float64 { return 7 },
		"two values":       func(loss float64, _ int) float64 { return math.Floor(loss) },
		"one that is best": func(_ float64, number int) float64 { return math.Min(1, float64(number)) },
		"one outlier":      func(loss float64, number int) float64 { return loss + 1e300*float64(number/20%2) },
		"none": func(_ float64, number int) float64 {
			return []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[number%3]
		},
		"all but one": func(_ float64, number int) float64 {
			if number == 5 {
				return 1
			}
			return math.NaN()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := guidedStudy(t, 3)
			number := 0
			w.values = func(p suggest.Point) []float64 {
				number++
				return []float64{value(oneValue(p)[0], number)}
			}
			w.asked = func(s suggest.Study, _ int, got []suggest.Proposal) {
				for _, p := range got {
					if !s.Space.Contains(p.Point) {
						t.Errorf("after %d trials %s is proposed", len(s.Trials), fmt.Sprint(s.Space.Assignments(p.Point)))
					}
				}
			}
			w.play(t, 100)
		})
	}
}
