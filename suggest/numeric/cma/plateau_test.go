package cma

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

func TestAPlateauIsLeft(t *testing.T) {
	found := 0
	for seed := range uint64(10) {
		m := New(Options{Dims: make([]box.Dim, 3)})
		bests := search(m, func(x []float64) float64 {
			far := 0.0
			for _, v := range x {
				far += (v - 0.95) * (v - 0.95)
			}
			return math.Min(far, 0.15)
		}, seed, 20)
		if slices.Min(bests) < 0.05 {
			found++
		}
	}
	if found < 6 {
		t.Errorf("%d of 10 searches found the hole near a corner", found)
	}
}

// What lies outside of the box is moved to the ends: with steps that are too long, nothing else
// is tried.
func TestAPlateauOverLevelsIsSearchedBetweenTheEnds(t *testing.T) {
	dims := make([]box.Dim, 6)
	for i := range dims {
		dims[i] = box.Dim{Kind: box.Ordered}
		for k := range 8 {
			dims[i].Levels = append(dims[i].Levels, (float64(k)+0.5)/8)
		}
	}
	m := New(Options{Dims: dims})
	ends, all := 0, 0
	search(m, func(x []float64) float64 {
		for i, v := range x {
			if level := dims[i].Nearest(v); m.Generation >= 10 && (level == 0 || level == 7) {
				ends++
			}
			if m.Generation >= 10 {
				all++
			}
		}
		return 1
	}, 1, 50)
	if ends < all/5 || ends > all/2 {
		t.Errorf("%d of %d values lie at the ends, want about a third", ends, all)
	}
}
