package box_test

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

func TestNearest(t *testing.T) {
	d := box.Dim{Kind: box.Ordered, Levels: []float64{0.1, 0.2, 0.6, 0.9}}
	for u, want := range map[float64]int{-1: 0, 0.1: 0, 0.14: 0, 0.16: 1, 0.39: 1, 0.41: 2, 0.74: 2, 0.76: 3, 2: 3, math.Inf(1): 3, math.Inf(-1): 0} {
		if got := d.Nearest(u); got != want {
			t.Errorf("Nearest(%v) = %d, want %d", u, got, want)
		}
	}
	if got := (box.Dim{Levels: []float64{0.5}}).Nearest(0.7); got != 0 {
		t.Errorf("one level: %d", got)
	}
}
