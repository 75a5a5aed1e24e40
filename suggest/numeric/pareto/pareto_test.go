package pareto_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

var inf, nan = math.Inf(1), math.NaN()

func TestDominates(t *testing.T) {
	cases := map[string]struct {
		a, b []float64
		want bool
	}{
		"better in all":           {[]float64{1, 2}, []float64{2, 3}, true},
		"better in one":           {[]float64{1, 3}, []float64{2, 3}, true},
		"equal":                   {[]float64{1, 3}, []float64{1, 3}, false},
		"neither":                 {[]float64{1, 3}, []float64{2, 2}, false},
		"worse":                   {[]float64{2, 3}, []float64{1, 2}, false},
		"a number and NaN":        {[]float64{1, 1}, []float64{1, nan}, true},
		"NaN and a number":        {[]float64{1, nan}, []float64{1, 1}, false},
		"NaN is like +Inf":        {[]float64{1, nan}, []float64{1, inf}, false},
		"-Inf is best":            {[]float64{-inf}, []float64{-math.MaxFloat64}, true},
		"no objectives are equal": {nil, nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := pareto.Dominates(c.a, c.b); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// cloud is n random points on a coarse grid, so that many values are equal,
// with some that are not finite.
func cloud(n, objectives int, seed uint64) [][]float64 {
	stream := rng.NewKey(seed, "pareto", "cloud").Stream(uint64(n * objectives))
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, objectives)
		for j := range points[i] {
			points[i][j] = float64(stream.Uint64N(12))
			if stream.Uint64N(40) == 0 {
				points[i][j] = []float64{nan, inf, -inf}[stream.Uint64N(3)]
			}
		}
	}
	return points
}

// slowRanks peels the fronts off, by definition.
func slowRanks(points [][]float64) []int {
	ranks := make([]int, len(points))
	for i := range ranks {
		ranks[i] = -1
	}
	for rank, left := 0, len(points); left > 0; rank++ {
		var front []int
		for i, p := range points {
			dominated := false
			for j, q := range points {
				dominated = dominated || ranks[j] < 0 && pareto.Dominates(q, p)
			}
			if ranks[i] < 0 && !dominated {
				front = append(front, i)
			}
		}
		for _, i := range front {
			ranks[i] = rank
			left--
		}
	}
	return ranks
}

func TestRanks(t *testing.T) {
	for objectives := 1; objectives <= 5; objectives++ {
		for seed := range uint64(20) {
			points := cloud(60, objectives, seed)
			if diff := cmp.Diff(slowRanks(points), pareto.Ranks(points)); diff != "" {
				t.Fatalf("%d objectives, seed %d (-want +got):\n%s", objectives, seed, diff)
			}
		}
	}
	if got := pareto.Ranks(nil); len(got) != 0 {
		t.Errorf("no points have the ranks %v", got)
	}
}

func TestFronts(t *testing.T) {
	points := [][]float64{{3, 3}, {1, 2}, {2, 1}, {1, 2}, {2, 3}}
	if diff := cmp.Diff([][]int{{1, 2, 3}, {4}, {0}}, pareto.Fronts(points)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, pareto.Front(points)); diff != "" {
		t.Error(diff)
	}
}

func TestCrowding(t *testing.T) {
	cases := map[string]struct {
		front [][]float64
		want  []float64
	}{
		// (4-0)/10 + (10-4)/10 and so on.
		"by hand":                       {[][]float64{{0, 10}, {1, 8}, {4, 4}, {10, 0}}, []float64{inf, 0.4 + 0.6, 0.9 + 0.8, inf}},
		"equal points share":            {[][]float64{{0, 10}, {5, 5}, {5, 5}, {10, 0}}, []float64{inf, 2, 0, inf}},
		"one point":                     {[][]float64{{1, 1}}, []float64{inf}},
		"none":                          {nil, []float64{}},
		"an objective without extent":   {[][]float64{{0, 1}, {1, 1}, {2, 1}}, []float64{inf, 1, inf}},
		"the extent overflows":          {[][]float64{{-math.MaxFloat64}, {0}, {math.MaxFloat64}}, []float64{inf, 1, inf}},
		"infinite ends and one between": {[][]float64{{-inf, 1}, {0, 0.5}, {inf, 0}}, []float64{inf, 2, inf}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := pareto.Crowding(c.front)
			for i := range got {
				got[i] = math.Round(got[i]*1e12) / 1e12
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDirections(t *testing.T) {
	want := [][]float64{{0, 0, 1}, {0, 0.5, 0.5}, {0, 1, 0}, {0.5, 0, 0.5}, {0.5, 0.5, 0}, {1, 0, 0}}
	if diff := cmp.Diff(want, pareto.Directions(3, 2)); diff != "" {
		t.Error(diff)
	}
	// The numbers of directions in table I of Deb and Jain, NSGA-III (2014):
	// 91 for 3 objectives and 12 divisions, 210 for 5 and 6.
	for _, c := range []struct{ m, divisions, want int }{{3, 12, 91}, {5, 6, 210}, {1, 4, 1}, {2, 49, 50}} {
		if got := pareto.Count(c.m, c.divisions, 1000); got != c.want || len(pareto.Directions(c.m, c.divisions)) != c.want {
			t.Errorf("%d objectives, %d divisions: %d directions, want %d", c.m, c.divisions, got, c.want)
		}
	}
	if got := pareto.Divisions(3, 100); got != 12 {
		t.Errorf("at most 100 directions of 3 objectives have %d divisions, want 12", got)
	}
	if got := pareto.Divisions(200, 50); got != 1 {
		t.Errorf("200 objectives: %d divisions, want 1", got)
	}
	if got := pareto.Count(1000, 1000, 500); got != 501 {
		t.Errorf("too many to count: %d, want 501", got)
	}
}

func FuzzHypervolumeIsTotal(f *testing.F) {
	f.Add(1.0, 2.0, -1e300, 1e300, math.Inf(-1), math.NaN(), 5.0, 5.0)
	f.Add(0.0, 0.0, 5e-324, 1e-310, 1.0, 1.0, math.Inf(1), 1.0)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g, x, y float64) {
		points := [][]float64{{a, b}, {c, d}, {e, g}}
		ref := []float64{x, y}
		v := pareto.Hypervolume(points, ref)
		if math.IsNaN(v) || v < 0 {
			t.Errorf("the hypervolume of %v within %v is %v", points, ref, v)
		}
		got := pareto.Select(points, ref, 3)
		slices.Sort(got)
		if !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("all three are %v", got)
		}
		for _, p := range [][]float64{points[0], pareto.Reference(points)} {
			pareto.Ranks([][]float64{p, ref})
		}
	})
}
