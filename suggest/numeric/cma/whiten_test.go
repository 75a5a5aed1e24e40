package cma

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// TestWhitenedSamplesAreStandardNormals after the distribution has been
// stretched and turned, in a box so far away that no sample is drawn twice.
func TestWhitenedSamplesAreStandardNormals(t *testing.T) {
	for name, separable := range map[string]bool{"full": false, "separable": true} {
		dims := []box.Dim{{Kind: box.Ordered, Levels: []float64{0.1, 0.5, 0.9}}, {Kind: box.Choice, Count: 3}, {Kind: box.Ordered, Levels: []float64{0, 1}}, {Kind: box.Ordered, Levels: []float64{0.2, 0.4}}}
		m := New(Options{Dims: dims, Separable: separable, Start: &Start{
			Mean: []float64{0.3, 0, 0.6, 0.5}, Sigma: 0.2, Covariance: []float64{2, 0.9, 0, 0.9, 1, -0.3, 0, -0.3, 0.5},
		}})
		if m.Numbers() != 3 {
			t.Fatalf("%s: %d numbers, want 3", name, m.Numbers())
		}
		stream := rng.NewKey(1, "whiten").Stream(0)
		rows := make([][]float64, 20000)
		for i := range rows {
			rows[i] = make([]float64, len(dims))
			m.Sample(stream, nil, rows[i])
		}
		white := m.Whiten(rows)
		for a := range 3 {
			for b := range a + 1 {
				mean, product := 0.0, 0.0
				for _, z := range white {
					mean += z[a] / float64(len(white))
					product += z[a] * z[b] / float64(len(white))
				}
				want := 0.0
				if a == b {
					want = 1
				}
				if math.Abs(mean) > 0.03 || math.Abs(product-want) > 0.04 {
					t.Errorf("%s: coordinates %d and %d have the mean %v and the mean product %v, want 0 and %v", name, a, b, mean, product, want)
				}
			}
		}
		unknown := m.Whiten([][]float64{{math.NaN(), 1, math.NaN(), math.NaN()}, m.Mean()})
		if zero := []float64{0, 0, 0}; !slices.Equal(unknown[0], zero) || !slices.Equal(unknown[1], zero) {
			t.Errorf("%s: a row without numbers, and the mean, are %v, want zeros", name, unknown)
		}
	}
}

func TestWhitenWithoutNumbers(t *testing.T) {
	m := New(Options{Dims: []box.Dim{{Kind: box.Choice, Count: 3}}})
	if got := m.Whiten([][]float64{{1}}); len(got) != 1 || len(got[0]) != 0 || m.Numbers() != 0 {
		t.Errorf("%v, with %d numbers", got, m.Numbers())
	}
}
