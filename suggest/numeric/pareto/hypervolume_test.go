package pareto_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func TestHypervolumeKnownAnswers(t *testing.T) {
	cases := map[string]struct {
		points [][]float64
		ref    []float64
		want   float64
	}{
		"no points":                   {nil, []float64{1, 1}, 0},
		"one objective":               {[][]float64{{2}, {1}, {4}}, []float64{3}, 2},
		"two, by hand":                {[][]float64{{1, 4}, {2, 2}, {4, 1}}, []float64{5, 5}, 1*4 + 3*2 + 1*1},
		"a dominated one":             {[][]float64{{1, 1}, {2, 2}}, []float64{3, 3}, 4},
		"on the edge of ref":          {[][]float64{{1, 3}}, []float64{3, 3}, 0},
		"beyond ref":                  {[][]float64{{1, 4}, {4, -7}}, []float64{3, 3}, 0},
		"three, by hand":              {[][]float64{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}, []float64{2, 2, 2}, 4},
		"four, by hand":               {[][]float64{{0, 1, 1, 1}, {1, 0, 1, 1}}, []float64{2, 2, 2, 2}, 3},
		"equal points":                {[][]float64{{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}, []float64{2, 2, 2, 2, 2}, 1},
		"NaN adds nothing":            {[][]float64{{math.NaN(), 0}, {1, 1}}, []float64{2, 2}, 1},
		"-Inf is infinite":            {[][]float64{{math.Inf(-1), 1}}, []float64{2, 2}, math.Inf(1)},
		"-Inf beyond ref":             {[][]float64{{math.Inf(-1), 3}}, []float64{2, 2}, 0},
		"the extent overflows":        {[][]float64{{-math.MaxFloat64, 1}}, []float64{math.MaxFloat64, 1 + 0x1p-40}, math.MaxFloat64 * 0x1p-39},
		"a factor overflows":          {[][]float64{{-1e200, -1e200, -1e-300}}, []float64{0, 0, 0}, 1e100},
		"a factor underflows":         {[][]float64{{-1e-200, -1e-200, -1e300}}, []float64{0, 0, 0}, 1e-100},
		"too large for a float64":     {[][]float64{{-1e200, -1e200}}, []float64{0, 0}, math.Inf(1)},
		"the smallest extent counts":  {[][]float64{{-5e-324, -1e300}}, []float64{0, 0}, 4.940656458412465e-24},
		"a reference without a value": {[][]float64{{0, 0}}, []float64{math.NaN(), 1}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := pareto.Hypervolume(c.points, c.ref); !near(got, c.want, 1e-14) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func near(got, want, relative float64) bool {
	return got == want || math.Abs(got-want) <= relative*math.Abs(want)
}

// inclusionExclusion is the volume of a union of boxes by its definition.
func inclusionExclusion(points [][]float64, ref []float64) float64 {
	sum := 0.0
	for set := 1; set < 1<<len(points); set++ {
		sign, v := -1.0, 1.0
		for i := range points {
			if set>>i&1 == 1 {
				sign = -sign
			}
		}
		for j := range ref {
			side := math.Inf(1)
			for i, p := range points {
				if set>>i&1 == 1 {
					side = math.Min(side, math.Max(0, ref[j]-p[j]))
				}
			}
			v *= side
		}
		sum += sign * v
	}
	return sum
}

func uniform(n, objectives int, seed uint64) [][]float64 {
	stream := rng.NewKey(seed, "pareto", "uniform").Stream(uint64(n * objectives))
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, objectives)
		for j := range points[i] {
			points[i][j] = stream.Float64()
			if stream.Uint64N(4) == 0 {
				points[i][j] = float64(stream.Uint64N(3)) / 2 // equal values, also at ref
			}
		}
	}
	return points
}

func TestHypervolumeAgainstInclusionAndExclusion(t *testing.T) {
	for objectives := 1; objectives <= 6; objectives++ {
		ref := slices.Repeat([]float64{1}, objectives)
		for seed := range uint64(60) {
			points := uniform(9, objectives, seed)
			want := inclusionExclusion(points, ref)
			if got := pareto.Hypervolume(points, ref); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%d objectives, seed %d: %v, want %v", objectives, seed, got, want)
			}
			slices.Reverse(points)
			if got := pareto.Hypervolume(points, ref); math.Abs(got-want) > 1e-12 {
				t.Fatalf("%d objectives, seed %d, reversed: %v, want %v", objectives, seed, got, want)
			}
		}
	}
}

// The volume above a front of n equally spaced points of the linear front
// x+y=1 within (1, 1) is 1/2 - 1/(2(n-1)): a staircase.
func TestHypervolumeOfTheLinearFront(t *testing.T) {
	const n = 101
	var points [][]float64
	for i := range n {
		points = append(points, []float64{float64(i) / (n - 1), 1 - float64(i)/(n-1)})
	}
	if got, want := pareto.Hypervolume(points, []float64{1, 1}), 0.5-0.5/(n-1); !near(got, want, 1e-12) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReference(t *testing.T) {
	cases := map[string]struct {
		points [][]float64
		want   []float64
	}{
		"positive, negative and zero": {[][]float64{{1, -4, 0}, {2, -2, -1}}, []float64{2.2, -1.8, 1e-12}},
		"the worst finite one":        {[][]float64{{math.Inf(1), 1}, {3, math.NaN()}}, []float64{3.3000000000000003, 1.1}},
		"does not overflow":           {[][]float64{{math.MaxFloat64}}, []float64{math.MaxFloat64}},
		"none":                        {nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pareto.Reference(c.points)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := pareto.Reference([][]float64{{math.NaN()}}); !math.IsNaN(got[0]) {
		t.Errorf("without a finite value: %v", got)
	}
}

// greedy is Select by its definition.
func greedy(points [][]float64, ref []float64, k int) []int {
	var out []int
	var picked [][]float64
	for len(out) < k {
		best, most := -1, -1.0
		for i, p := range points {
			if slices.Contains(out, i) {
				continue
			}
			v := pareto.Hypervolume(append(slices.Clone(picked), p), ref) - pareto.Hypervolume(picked, ref)
			if v > most+1e-12 {
				best, most = i, v
			}
		}
		out = append(out, best)
		picked = append(picked, points[best])
	}
	return out
}

func TestSelect(t *testing.T) {
	for objectives := 2; objectives <= 4; objectives++ {
		ref := slices.Repeat([]float64{1.5}, objectives)
		for seed := range uint64(20) {
			points := uniform(25, objectives, seed)
			if diff := cmp.Diff(greedy(points, ref, 8), pareto.Select(points, ref, 8)); diff != "" {
				t.Fatalf("%d objectives, seed %d (-want +got):\n%s", objectives, seed, diff)
			}
		}
	}
	points := [][]float64{{9, 9}, {2, 2}, {1, 3}, {2, 2}, {3, 1}}
	if diff := cmp.Diff([]int{1, 2, 4, 0, 3}, pareto.Select(points, []float64{4, 4}, 10)); diff != "" {
		t.Errorf("all of them, what adds nothing last (-want +got):\n%s", diff)
	}
}

func BenchmarkHypervolume(b *testing.B) {
	for _, objectives := range []int{2, 3, 4, 5} {
		points := uniform(100, objectives, 1)
		ref := slices.Repeat([]float64{1.1}, objectives)
		b.Run(fmt.Sprint(objectives), func(b *testing.B) {
			for b.Loop() {
				pareto.Hypervolume(points, ref)
			}
		})
	}
}

func BenchmarkRanks(b *testing.B) {
	for _, objectives := range []int{1, 2, 3} {
		points := uniform(10000, objectives, 1)
		b.Run(fmt.Sprint(objectives), func(b *testing.B) {
			for b.Loop() {
				pareto.Ranks(points)
			}
		})
	}
}
