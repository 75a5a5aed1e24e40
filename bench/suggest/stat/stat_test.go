package stat

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// The p-values are those of scipy 1.17.1's stats.wilcoxon with method "exact";
// that with ties was counted over all 512 changes of sign with numpy.
func TestWilcoxon(t *testing.T) {
	for name, c := range map[string]struct {
		differences []float64
		want        float64
	}{
		"ten": {[]float64{1.83, 0.5, -1.62, 2.48, 1.68, -1.88, 1.55, 3.06, 1.3, -0.2}, 0.193359375},
		"thirty": {[]float64{
			3.324413, 3.527892, 1.22336, -1.470407, -2.076773, -0.038246, 2.77096, 3.768075, 2.036355, -0.832063,
			-2.199971, -0.809719, 2.060501, 3.771822, 2.750864, -0.06371, -2.084192, -1.452962, 1.249632, 3.538836,
			3.309967, 0.773446, -1.738661, -1.916735, 0.402945, 3.087675, 3.669128, 1.612717, -1.190902, -2.164095,
		}, 0.06666470877826214},
		"ties and a zero": {[]float64{1, 1, 2, -1, 3, 2, -2, 4, 0, 5}, 0.08203125},
		"nothing":         {[]float64{0, 0}, 1},
		"all positive":    {[]float64{1, 2, 3, 4, 5}, 0.0625},
	} {
		if got := Wilcoxon(c.differences); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWilcoxonOfMirroredDifferences(t *testing.T) {
	stream := rng.New(1, "test", 0, "wilcoxon")
	for range 50 {
		var a, b []float64
		for range 1 + stream.Uint64N(40) {
			v := math.Round(10 * stream.NormFloat64())
			a, b = append(a, v), append(b, -v)
		}
		if p, q := Wilcoxon(a), Wilcoxon(b); p != q || p <= 0 || p > 1 {
			t.Errorf("%v has p = %v, mirrored %v", a, p, q)
		}
	}
}

// The example is worked through by hand: 0.01*4, 0.02*3, 0.03*2, and what is
// below the one before is raised to it.
func TestHolm(t *testing.T) {
	got := Holm([]float64{0.03, 0.01, 0.5, 0.02})
	if diff := cmp.Diff([]float64{0.06, 0.04, 0.5, 0.06}, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The quantiles are numpy's, the ranks scipy's.
func TestQuantilesAndRanks(t *testing.T) {
	list := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	for q, want := range map[float64]float64{0.05: 1, 0.5: 3.5, 0.95: 7.95, 0: 1, 1: 9} {
		if got := Quantile(list, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := Median([]float64{1, math.Inf(1), math.Inf(1)}); !math.IsInf(got, 1) {
		t.Errorf("the median with infinities is %v", got)
	}
	if diff := cmp.Diff([]float64{3, 1.5, 4, 1.5, 5}, Ranks([]float64{3, 1, 4, 1, 5})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestClusterBootstrap has one value in each cluster, so that the interval is
// that of a mean of independent values: about 1.96 standard errors.
func TestClusterBootstrap(t *testing.T) {
	stream := rng.New(1, "test", 0, "bootstrap")
	var single, copies [][][]float64
	for range 400 {
		v := stream.NormFloat64()
		single = append(single, [][]float64{{v}})
		copies = append(copies, [][]float64{{v, v}, {v}, {v}})
	}
	a, b := ClusterBootstrap(single, 2000), ClusterBootstrap(copies, 2000)
	if half := (a.High - a.Low) / 2; math.Abs(half-1.96/20) > 0.012 {
		t.Errorf("half of the interval is %v, want about %v", half, 1.96/20.0)
	}
	// More of the same in a cluster is no more evidence.
	if r := (b.High - b.Low) / (a.High - a.Low); math.Abs(r-1) > 0.05 {
		t.Errorf("copies change the interval by the factor %v", r)
	}
	if math.Abs(a.Mean-b.Mean) > 1e-12 {
		t.Errorf("means %v and %v", a.Mean, b.Mean)
	}
}
