package bayes

import (
	"slices"
	"testing"
)

func TestRegionSide(t *testing.T) {
	down := make([]float64, 12)
	for i := range down {
		down[i] = -float64(i)
	}
	flat := slices.Repeat([]float64{1}, 1000)
	for name, c := range map[string]struct {
		losses []float64
		want   float64
	}{
		"nothing yet":           {nil, regionStart},
		"always better":         {down, regionLargest},
		"no better for a while": {flat[:1+10], regionStart / 2},
		"twice":                 {flat[:1+20], regionStart / 4},
		"from the start":        {flat[:1+70], regionStart},
	} {
		if got := regionSide(c.losses, 40); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
