package qmc

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// From SciPy: qmc.Halton(5, scramble=False).random(1001), rows 1 to 4 and 1000.
func TestHaltonPublishedPoints(t *testing.T) {
	h, err := NewHalton(5)
	if err != nil {
		t.Fatal(err)
	}
	for index, want := range map[uint64][]float64{
		0:    {0, 0, 0, 0, 0},
		1:    {1. / 2, 1. / 3, 1. / 5, 1. / 7, 1. / 11},
		2:    {1. / 4, 2. / 3, 2. / 5, 2. / 7, 2. / 11},
		3:    {3. / 4, 1. / 9, 3. / 5, 3. / 7, 3. / 11},
		4:    {1. / 8, 4. / 9, 4. / 5, 4. / 7, 4. / 11},
		1000: {0.0927734375, 0.3475080018289895, 0.00512, 0.9162848812994586, 0.9316303531179565},
	} {
		got := make([]float64, 5)
		h.At(index, got)
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-14, 0)); diff != "" {
			t.Errorf("point %d: %s", index, diff)
		}
	}
}

// Of the first base^k points of a scrambled sequence, one lies in each of the
// base^k equal parts of that dimension.
func TestScrambledHaltonIsEvenlySpread(t *testing.T) {
	const dimensions = 6
	h, err := NewScrambledHalton(dimensions, rng.NewKey(5))
	if err != nil {
		t.Fatal(err)
	}
	u := make([]float64, dimensions)
	for d, base := range h.bases {
		n := base * base
		seen := make([]int, n)
		for i := range n {
			h.At(i, u)
			if !(u[d] > 0 && u[d] < 1) {
				t.Fatalf("coordinate %v", u[d])
			}
			seen[int(u[d]*float64(n))]++
		}
		for part, count := range seen {
			if count != 1 {
				t.Errorf("dimension %d: %d points in part %d of %d", d, count, part, n)
			}
		}
	}
}

// Each point of a scrambled sequence is uniform over the scramblings.
func TestScrambledHaltonIsUniform(t *testing.T) {
	const keys, bins = 8000, 20
	counts := make([][bins]int, 4)
	for key := range keys {
		h, err := NewScrambledHalton(4, rng.NewKey(uint64(key)))
		if err != nil {
			t.Fatal(err)
		}
		u := make([]float64, 4)
		h.At(3, u)
		for d, x := range u {
			counts[d][int(x*bins)]++
		}
	}
	for d := range counts {
		chi := 0.0
		for _, n := range counts[d] {
			chi += math.Pow(float64(n)-keys/bins, 2) / (keys / bins)
		}
		if chi > 43.8 { // the 0.999 quantile with 19 degrees of freedom
			t.Errorf("dimension %d: chi-square %.1f", d, chi)
		}
	}
}

func TestHaltonDimensions(t *testing.T) {
	for _, n := range []int{-1, 0, MaxHaltonDimensions + 1} {
		if _, err := NewHalton(n); err == nil {
			t.Errorf("%d dimensions are no error", n)
		}
	}
	h, err := NewHalton(MaxHaltonDimensions)
	if err != nil || h.bases[MaxHaltonDimensions-1] != 3671 {
		t.Errorf("the last base is %d, %v", h.bases[MaxHaltonDimensions-1], err)
	}
}
