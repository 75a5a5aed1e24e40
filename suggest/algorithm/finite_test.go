package algorithm_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

func letters(name string, n int) suggest.ParameterSpec {
	return suggest.ParameterSpec{Name: name, Kind: suggest.Int, Min: "1", Max: fmt.Sprint(n)}
}

func TestGridNeedsStepsForDoubles(t *testing.T) {
	grid, _ := algorithm.Get("grid")
	space := newSpace(t, letters("n", 3),
		suggest.ParameterSpec{Name: "lr", Kind: suggest.Double, Min: "0", Max: "1"},
		suggest.ParameterSpec{Name: "fixed", Kind: suggest.Double, Min: "1", Max: "1"},
		suggest.ParameterSpec{Name: "decay", Kind: suggest.Double, Min: "0", Max: "1"})
	_, err := grid.New(space, nil)
	var problems suggest.SpaceError
	if !errors.As(err, &problems) {
		t.Fatalf("got %v, want a SpaceError", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprint(p.Index, p.Name, p.Field))
	}
	if diff := cmp.Diff([]string{"1lrstep", "3decaystep"}, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(err.Error(), "grid_points") {
		t.Errorf("%q does not name the setting that helps", err)
	}
}

func TestGridPointsSpaceDoublesByTheirDistribution(t *testing.T) {
	cases := map[string]struct {
		distribution suggest.Distribution
		points       string
		want         []string
	}{
		"uniform":    {suggest.Uniform, "4", []string{"0.001", "33.334", "66.667", "100"}},
		"logUniform": {suggest.LogUniform, "6", []string{"0.001", "0.01", "0.1", "1", "10", "100"}},
		"one point":  {suggest.Uniform, "1", []string{"50.0005"}},
		"two points": {suggest.Normal, "2", []string{"0.001", "100"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			space := newSpace(t, suggest.ParameterSpec{Name: "x", Kind: suggest.Double, Min: "0.001", Max: "100", Distribution: c.distribution})
			s := suggest.Study{Space: space}
			setting := suggest.Setting{Name: "grid_points", Value: c.points}
			proposals := suggestAll(t, "grid", space, s, 100, setting)
			slices.SortFunc(proposals, func(a, b suggest.Proposal) int {
				return int(math.Copysign(1, a.Point[0].Float()-b.Point[0].Float()))
			})
			for i, p := range proposals {
				s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: p.Point})
				want, _ := space.Parse([]suggest.Assignment{{Name: "x", Value: c.want[i]}})
				if math.Abs(p.Point[0].Float()-want[0].Float()) > 1e-12*want[0].Float() {
					t.Errorf("point %d is %v, want %v", i, p.Point[0], c.want[i])
				}
			}
			if len(proposals) != len(c.want) {
				t.Errorf("%d points, want %d", len(proposals), len(c.want))
			}
			// They are known again in the history, and a point between them is not.
			grid, _ := algorithm.Get("grid")
			a, _ := grid.New(space, suggest.Settings{setting})
			if _, err := a.Suggest(t.Context(), s, 1); !errors.Is(err, suggest.ErrExhausted) {
				t.Errorf("after all: %v", err)
			}
			between, _ := space.Parse([]suggest.Assignment{{Name: "x", Value: "20"}})
			s.Update(0, func(t *suggest.Trial) { t.Point = between })
			if left, err := a.Suggest(t.Context(), s, 9); err != nil || len(left) != 1 {
				t.Errorf("with one left: %d, %v", len(left), err)
			}
		})
	}
}

func TestTheBeginningOfTheGridIsAFairSample(t *testing.T) {
	space := newSpace(t, letters("a", 10), letters("b", 10), letters("c", 10))
	proposals := suggestAll(t, "grid", space, suggest.Study{Space: space, Seed: 5}, 200)
	for i := range 3 {
		counts := make([]float64, 10)
		for _, p := range proposals {
			index, _ := p.Point[i].Index()
			counts[index]++
		}
		chi := 0.0
		for _, c := range counts {
			chi += (c - 20) * (c - 20) / 20
		}
		if chi > 27.88 { // the 0.999 quantile with 9 degrees of freedom
			t.Errorf("parameter %d: counts %v", i, counts)
		}
	}
}

// A space that cannot be enumerated must cost no more than a small one.
func TestHugeFiniteSpaces(t *testing.T) {
	var bits []suggest.ParameterSpec
	for i := range 100 {
		bits = append(bits, suggest.ParameterSpec{Name: fmt.Sprint("b", i), Kind: suggest.Categorical, List: []string{"on", "off"}})
	}
	spaces := map[string]suggest.Space{
		"2^100 points": newSpace(t, bits...),
		"2^62 points":  newSpace(t, bits[:62]...),
		"10^15 points": newSpace(t, letters("a", 1e5), letters("b", 1e5), letters("c", 1e5)),
	}
	for name, space := range spaces {
		for _, r := range algorithm.All() {
			if r.Repeats {
				continue // points come again on purpose
			}
			t.Run(name+" "+r.Name, func(t *testing.T) {
				proposals := suggestAll(t, r.Name, space, suggest.Study{Space: space}, 500)
				seen := map[string]bool{}
				for _, p := range proposals {
					key, ok := space.Key(p.Point)
					if !ok || seen[key] {
						t.Fatalf("%v: allowed %v, seen before %v", p.Point, ok, seen[key])
					}
					seen[key] = true
				}
				if len(seen) != 500 {
					t.Errorf("%d points, want 500", len(seen))
				}
			})
		}
	}
}

// In a space of which nearly everything was tried, what is left is found: by
// weighing in a small space, by walking in a large one.
func TestTheLastPointsAreFound(t *testing.T) {
	spaces := map[string]suggest.Space{
		"weighing": newSpace(t, letters("a", 30), letters("b", 30)),
		"walking":  newSpace(t, letters("a", 100), letters("b", 100)),
		// Almost all of the probability is at a few values.
		"skewed": newSpace(t, suggest.ParameterSpec{Name: "a", Kind: suggest.Int, Min: "1", Max: "20000", Distribution: suggest.LogUniform}),
	}
	for name, space := range spaces {
		for _, r := range algorithm.All() {
			if r.Repeats {
				continue // points come again on purpose
			}
			t.Run(name+" "+r.Name, func(t *testing.T) {
				size, _ := space.Size()
				s := suggest.Study{Space: space, Seed: 2}
				all := suggestAll(t, "grid", space, s, int(size))
				if len(all) != int(size) {
					t.Fatalf("the grid has %d of %d points", len(all), size)
				}
				left := map[string]bool{}
				for i, p := range all {
					if i%(len(all)/3) == 1 {
						key, _ := space.Key(p.Point)
						left[key] = true
						continue
					}
					s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: p.Point, State: suggest.Succeeded})
				}
				got := suggestAll(t, r.Name, space, s, 100)
				if len(got) != len(left) {
					t.Errorf("%d proposals, want %d", len(got), len(left))
				}
				for _, p := range got {
					if key, _ := space.Key(p.Point); !left[key] {
						t.Errorf("%v was tried", p.Point)
					}
				}
			})
		}
	}
}

// When draws no longer hit, what is left is still chosen by its probability.
func TestWhatIsLeftIsChosenByItsProbability(t *testing.T) {
	space := newSpace(t, suggest.ParameterSpec{Name: "a", Kind: suggest.Int, Min: "1", Max: "1000", Distribution: suggest.LogUniform})
	parameter := space.At(0)
	var trials []*suggest.Trial
	for i := range int64(998) {
		trials = append(trials, &suggest.Trial{Number: int(i), Point: suggest.Point{parameter.At(i)}})
	}
	trials[499].Point = suggest.Point{parameter.At(998)} // 500 and 1000 are left
	lows := 0
	for seed := range uint64(600) {
		p := suggestAll(t, "random", space, suggest.Study{Space: space, Seed: seed, Trials: trials}, 1)[0]
		if p.Point[0].Float() == 500 {
			lows++
		}
	}
	// 500 has twice the probability of 1000: 400 of 600, four standard errors.
	if lows < 354 || lows > 446 {
		t.Errorf("500 came %d of 600 times, want about 400", lows)
	}
}

func TestSobolRefusesTooManyParameters(t *testing.T) {
	var specs []suggest.ParameterSpec
	for i := range 513 {
		specs = append(specs, letters(fmt.Sprint("p", i), 4))
	}
	r, _ := algorithm.Get("sobol")
	if _, err := r.New(newSpace(t, specs...), nil); err == nil || !strings.Contains(err.Error(), "512") {
		t.Errorf("got %v, want an error with the limit", err)
	}
	if _, err := r.New(newSpace(t, specs[:512]...), nil); err != nil {
		t.Error(err)
	}
}

func TestASpaceWithoutParametersHasOnePoint(t *testing.T) {
	for _, r := range algorithm.All() {
		if r.Repeats {
			continue // points come again on purpose
		}
		t.Run(r.Name, func(t *testing.T) {
			space := newSpace(t)
			if got := suggestAll(t, r.Name, space, suggest.Study{Space: space}, 5); len(got) != 1 {
				t.Errorf("%d proposals, want 1", len(got))
			}
		})
	}
}

func BenchmarkSuggest(b *testing.B) {
	var specs []suggest.ParameterSpec
	for i := range 10 {
		specs = append(specs, suggest.ParameterSpec{
			Name: fmt.Sprint("p", i), Kind: suggest.Double, Min: "0.001", Max: "1", Step: "0.001",
			Distribution: []suggest.Distribution{suggest.Uniform, suggest.LogUniform, suggest.Normal}[i%3],
		})
	}
	space := newSpace(b, specs...)
	for _, r := range algorithm.All() {
		if r.Repeats {
			continue // points come again on purpose
		}
		for _, n := range []int{0, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/trials=%d", r.Name, n), func(b *testing.B) {
				s := suggest.Study{Space: space}
				for i, p := range suggestAll(b, r.Name, space, s, n) {
					s.Trials = append(s.Trials, &suggest.Trial{Number: i, Point: p.Point, State: suggest.Succeeded})
				}
				a, err := r.New(space, nil)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := a.Suggest(b.Context(), s, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
