package algorithm_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

const drawn = 4000

// draw asks for many points of a space with one parameter beside another that
// makes the space infinite, so that values may come again.
func draw(t *testing.T, name string, spec suggest.ParameterSpec) (suggest.Parameter, []suggest.Value) {
	t.Helper()
	spec.Name = "p"
	space := newSpace(t, spec, suggest.ParameterSpec{Name: "other", Kind: suggest.Double, Min: "0", Max: "1"})
	proposals := suggestAll(t, name, space, suggest.Study{Space: space, Seed: 20261121}, drawn)
	values := make([]suggest.Value, len(proposals))
	for i, p := range proposals {
		values[i] = p.Point[0]
	}
	return space.At(0), values
}

func newSpace(t testing.TB, specs ...suggest.ParameterSpec) suggest.Space {
	t.Helper()
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func suggestAll(t testing.TB, name string, space suggest.Space, s suggest.Study, n int, settings ...suggest.Setting) []suggest.Proposal {
	t.Helper()
	r, _ := algorithm.Get(name)
	a, err := r.New(space, settings)
	if err != nil {
		t.Fatal(err)
	}
	proposals, err := a.Suggest(t.Context(), s, n)
	if err != nil {
		t.Fatal(err)
	}
	return proposals
}

// below gives the probability of a value below x for a distribution between lo
// and hi, whose moments come from min and max: gonum's, not ours.
func below(d suggest.Distribution, min, max, lo, hi float64) func(x float64) float64 {
	if d == suggest.LogUniform || d == suggest.LogNormal {
		linear := map[suggest.Distribution]suggest.Distribution{suggest.LogUniform: suggest.Uniform, suggest.LogNormal: suggest.Normal}[d]
		f := below(linear, math.Log(min), math.Log(max), math.Log(lo), math.Log(hi))
		return func(x float64) float64 { return f(math.Log(x)) }
	}
	if d == suggest.Normal {
		n := distuv.Normal{Mu: (min + max) / 2, Sigma: (max - min) / 6}
		return func(x float64) float64 { return (n.CDF(x) - n.CDF(lo)) / (n.CDF(hi) - n.CDF(lo)) }
	}
	return func(x float64) float64 { return (x - lo) / (hi - lo) }
}

var distributions = []suggest.Distribution{suggest.Uniform, suggest.LogUniform, suggest.Normal, suggest.LogNormal}

func TestContinuousValuesFollowTheirDistribution(t *testing.T) {
	for _, name := range []string{"random", "sobol"} {
		for _, d := range distributions {
			t.Run(name+" "+string(d), func(t *testing.T) {
				_, values := draw(t, name, suggest.ParameterSpec{Kind: suggest.Double, Min: "0.001", Max: "10", Distribution: d})
				x := make([]float64, len(values))
				for i, v := range values {
					x[i] = v.Float()
				}
				slices.Sort(x)
				f := below(d, 0.001, 10, 0.001, 10)
				distance := 0.0 // of Kolmogorov and Smirnov
				for i, v := range x {
					distance = max(distance, math.Abs(f(v)-float64(i)/drawn), math.Abs(f(v)-float64(i+1)/drawn))
				}
				// 1.95/sqrt(n) is the 0.999 quantile.
				if limit := 1.95 / math.Sqrt(drawn); distance > limit {
					t.Errorf("the distance is %v, above %v", distance, limit)
				}
			})
		}
	}
}

func TestValuesOnAGridFollowTheirDistribution(t *testing.T) {
	type grid struct{ min, max, step, last float64 }
	grids := map[suggest.Kind]grid{
		suggest.Int:    {1, 12, 1, 12},
		suggest.Double: {0.5, 2.45, 0.25, 2.25},
	}
	for _, name := range []string{"random", "sobol"} {
		for kind, g := range grids {
			for _, d := range distributions {
				t.Run(fmt.Sprint(name, " ", kind, " ", d), func(t *testing.T) {
					p, values := draw(t, name, suggest.ParameterSpec{
						Kind: kind, Distribution: d,
						Min: fmt.Sprint(g.min), Max: fmt.Sprint(g.max), Step: fmt.Sprint(g.step),
					})
					f := below(d, g.min, g.max, g.min-g.step/2, g.last+g.step/2)
					count, _ := p.Count()
					want := make([]float64, count)
					for k := range want {
						x := g.min + float64(k)*g.step
						want[k] = f(x+g.step/2) - f(x-g.step/2)
					}
					follows(t, values, want)
				})
			}
		}
	}
}

func TestChoicesAreEquallyLikely(t *testing.T) {
	for _, name := range []string{"random", "sobol"} {
		for _, kind := range []suggest.Kind{suggest.Discrete, suggest.Categorical} {
			t.Run(fmt.Sprint(name, " ", kind), func(t *testing.T) {
				_, values := draw(t, name, suggest.ParameterSpec{Kind: kind, List: []string{"1", "10", "100", "3", "7"}})
				follows(t, values, []float64{0.2, 0.2, 0.2, 0.2, 0.2})
			})
		}
	}
}

// follows is Pearson's chi-square test at the level 0.001; rare values are put
// together.
func follows(t *testing.T, values []suggest.Value, want []float64) {
	t.Helper()
	counts := make([]float64, len(want))
	for _, v := range values {
		index, ok := v.Index()
		if !ok {
			t.Fatalf("%v has no index", v)
		}
		counts[index]++
	}
	chi, cells, rest, restCount, sum := 0.0, 0, 0.0, 0.0, 0.0
	add := func(count, expected float64) {
		chi += (count - expected) * (count - expected) / expected
		cells++
	}
	for k, p := range want {
		sum += p
		if expected := p * drawn; expected >= 5 {
			add(counts[k], expected)
		} else {
			rest += expected
			restCount += counts[k]
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Fatalf("the expected probabilities sum to %v", sum)
	}
	if rest >= 1 {
		add(restCount, rest)
	} else if restCount > 10 {
		t.Errorf("%v values that are hardly ever expected", restCount)
	}
	limit := distuv.ChiSquared{K: float64(cells - 1)}.Quantile(0.999)
	if chi > limit {
		t.Errorf("chi-square %v with %d cells, above %v: counts %v, probabilities %v", chi, cells, limit, counts, want)
	}
}

// Parameters must not depend on each other, nor trials on their neighbours.
func TestRandomValuesAreNotCorrelated(t *testing.T) {
	space := newSpace(t,
		suggest.ParameterSpec{Name: "a", Kind: suggest.Double, Min: "0", Max: "1"},
		suggest.ParameterSpec{Name: "b", Kind: suggest.Double, Min: "0", Max: "1"})
	proposals := suggestAll(t, "random", space, suggest.Study{Space: space, Seed: 3}, drawn)
	within, between := 0.0, 0.0
	for i, p := range proposals {
		a, b := p.Point[0].Float()-0.5, p.Point[1].Float()-0.5
		within += 12 * a * b / drawn
		between += 12 * a * (proposals[(i+1)%drawn].Point[0].Float() - 0.5) / drawn
	}
	if limit := 4 / math.Sqrt(drawn); math.Abs(within) > limit || math.Abs(between) > limit {
		t.Errorf("correlations %v within and %v between trials, want below %v", within, between, limit)
	}
}

// Sobol covers a plane more evenly than random: the largest deviation of the
// share of points in boxes from their area.
func TestSobolIsMoreEvenThanRandom(t *testing.T) {
	space := newSpace(t,
		suggest.ParameterSpec{Name: "a", Kind: suggest.Double, Min: "0", Max: "1"},
		suggest.ParameterSpec{Name: "b", Kind: suggest.Double, Min: "0", Max: "1"})
	deviation := func(name string, seed uint64) float64 {
		proposals := suggestAll(t, name, space, suggest.Study{Space: space, Seed: seed}, 128)
		worst := 0.0
		for x := 0.05; x <= 1; x += 0.05 {
			for y := 0.05; y <= 1; y += 0.05 {
				inside := 0.0
				for _, p := range proposals {
					if p.Point[0].Float() < x && p.Point[1].Float() < y {
						inside++
					}
				}
				worst = max(worst, math.Abs(inside/128-x*y))
			}
		}
		return worst
	}
	for seed := range uint64(5) {
		if s, r := deviation("sobol", seed), deviation("random", seed); s > r/2 {
			t.Errorf("seed %d: sobol deviates by %v, random by %v", seed, s, r)
		}
	}
}

// What a constraint leaves is covered as evenly as the whole, whichever of the
// parameters it is on: a point that is drawn again must not keep the first
// digits of the one that was refused.
func TestConstraintsLeaveSequencesEven(t *testing.T) {
	unit := func(name string) suggest.ParameterSpec {
		return suggest.ParameterSpec{Name: name, Kind: suggest.Double, Min: "0", Max: "1"}
	}
	for _, name := range []string{"halton", "random", "sobol"} {
		for i, constraint := range []string{"a <= 0.3", "b <= 0.3", "c <= 0.3"} {
			t.Run(name+", "+constraint, func(t *testing.T) {
				space, err := newSpace(t, unit("a"), unit("b"), unit("c")).WithConstraints([]string{constraint})
				if err != nil {
					t.Fatal(err)
				}
				const trials, parts = 512, 4
				var counts [3][parts]int
				for _, p := range suggestAll(t, name, space, suggest.Study{Space: space, Seed: 20261121}, trials) {
					for d, v := range p.Point {
						x := v.Float()
						if d == i {
							x /= 0.3
						}
						counts[d][min(parts-1, int(parts*x))]++
					}
				}
				for d, count := range counts {
					for part, n := range count {
						if n < trials/parts*3/4 || n > trials/parts*5/4 { // 3 deviations of random points
							t.Errorf("parameter %d: %d points in quarter %d of what is allowed, %v", d, n, part, count)
						}
					}
				}
			})
		}
	}
}
