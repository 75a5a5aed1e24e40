package cmaes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/history"
)

func TestExtent(t *testing.T) {
	for name, c := range map[string]struct {
		losses []float64
		want   float64 // half of how far they are apart
	}{
		"none":                           {nil, 0},
		"one":                            {[]float64{3}, 0},
		"equal ones":                     {[]float64{3, 3}, 0},
		"all count":                      {[]float64{5, 1, 1e5, 3}, 49999.5},
		"one has diverged":               {[]float64{5, 1, 1e30, 3}, 2},
		"most have diverged":             {[]float64{5, 1, 1e30, 2e30, 1e31}, 2},
		"two are equal but for rounding": {[]float64{-0.98, -0.9800000000000002, -0.5}, 0.2400000000000001},
		"the largest there may be":       {[]float64{-1e308, 1e308}, 1e308},
		"the others are equally good":    {[]float64{1, 1, 1e30}, 5e29},
	} {
		rows := []*history.Row{{}} // it failed
		for _, loss := range c.losses {
			rows = append(rows, &history.Row{Losses: []float64{loss}})
		}
		if diff := cmp.Diff(c.want, extent(rows)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
