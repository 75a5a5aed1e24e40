package stop

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func TestSignedRank(t *testing.T) {
	thirty := []float64{
		0.426, 0.168, 0.94, 0.405, -0.236, 0.662, 1.604, 1.247, -0.404, -0.965, -0.323, 0.341, -2.025, 0.081, -0.946,
		-0.432, -0.244, -0.016, 0.712, 1.343, 0.171, 1.666, -0.365, 0.652, 1.203, 0.394, -0.443, -0.622, -0.158, 0.52,
	}
	cases := map[string]struct {
		differences []float64
		want        float64
	}{
		// SciPy 1.17: wilcoxon(d, alternative="greater", method="exact").
		"seven without ties": {[]float64{0.3, 0.1, -0.2, 0.5, 0.7, -0.05, 0.9}, 0.0546875},
		// By going through all signs of scipy.stats.rankdata's ranks.
		"ties and zeros": {[]float64{1, 1, 2, 2, -1, 3, 0, 0}, 0.0625},
		"all worse":      {[]float64{1, 2, 3, 4}, 0.0625},
		"all better":     {[]float64{-1, -2, -3}, 1},
		"all equal":      {[]float64{0, 0, 0}, 1},
		"none":           {nil, 1},
		"infinite":       {[]float64{math.Inf(1), math.Inf(1), 1, math.Inf(-1)}, 5.0 / 16},
		// SciPy 1.17: method="approx", correction=False.
		"thirty": {thirty, 0.11051078740665171},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := signedRank(c.differences); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	cases := map[string]struct {
		sorted  []float64
		q, want float64
	}{
		// numpy.quantile.
		"a third of four":                 {[]float64{1, 2, 4, 8}, 1. / 3, 2},
		"median of four":                  {[]float64{1, 2, 4, 8}, 0.5, 3},
		"one":                             {[]float64{5}, 0.7, 5},
		"last":                            {[]float64{1, 2}, 1, 2},
		"between a number and infinity":   {[]float64{1, inf}, 0.5, inf},
		"at a number before infinity":     {[]float64{1, 2, inf}, 0.5, 2},
		"infinities":                      {[]float64{inf, inf}, 0.5, inf},
		"numbers whose sum would be huge": {[]float64{-1.5e308, 1.5e308}, 0.5, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := quantile(c.sorted, c.q); math.Abs(got-c.want) > 1e-12 || got != got {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestRungs(t *testing.T) {
	cases := map[string]struct {
		rungs rungs
		step  int64
		want  int64 // 0: none
	}{
		"below the first":           {rungs{first: 3, eta: 3}, 2, 0},
		"at the first":              {rungs{first: 3, eta: 3}, 3, 3},
		"between":                   {rungs{first: 1, eta: 3}, 26, 9},
		"a power":                   {rungs{first: 1, eta: 3}, 243, 243},
		"the end is no rung":        {rungs{first: 1, eta: 3, end: 9}, 9, 3},
		"beyond the end":            {rungs{first: 1, eta: 3, end: 9}, 100, 3},
		"the first is at the end":   {rungs{first: 9, eta: 3, end: 9}, 9, 0},
		"without overflow":          {rungs{first: 1, eta: 10}, math.MaxInt64, 1e18},
		"an eta beyond all numbers": {rungs{first: 2, eta: maxResource}, maxResource, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, ok := c.rungs.reached(c.step); got != c.want || ok != (c.want > 0) {
				t.Errorf("got %d, %v, want %d", got, ok, c.want)
			}
		})
	}
}

func TestBrackets(t *testing.T) {
	// Li et al., Hyperband, table 1 (R = 81, eta = 3): 81, 34, 15, 8 and 5
	// trials, here before rounding up.
	want := []bracket{{1, 81}, {3, 33.75}, {9, 15}, {27, 7.5}, {81, 5}}
	if diff := cmp.Diff(want, rungs{first: 1, eta: 3, end: 81}.brackets(), cmp.AllowUnexported(bracket{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for end, count := range map[int64]int{243: 6, 242: 5, 1: 1, 0: 0, 1 << 53: 34} {
		if got := len(rungs{first: 1, eta: 3, end: end}.brackets()); got != count {
			t.Errorf("up to %d: %d brackets, want %d", end, got, count)
		}
	}
}

func TestTrialsAreSpreadOverBrackets(t *testing.T) {
	brackets := rungs{first: 1, eta: 3, end: 81}.brackets()
	counts := make([]float64, len(brackets))
	const n = 14225 // a hundred times the sum of the shares
	for number := range n {
		counts[draw(rng.NewKey(1, "test"), number, brackets)]++
	}
	for i, b := range brackets {
		if want := 100 * b.share; math.Abs(counts[i]-want) > 5*math.Sqrt(want) {
			t.Errorf("bracket %d has %v trials, want about %v", i, counts[i], want)
		}
	}
}
