package gp

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// The vector instructions must give the bits of plain Go, for any length,
// distance and place, and may not touch what lies behind.
func TestMaternHasTheBitsOfPlainGo(t *testing.T) {
	stream := rng.New(1, "gp", 0, "matern")
	special := []float64{0, math.Copysign(0, -1), 5e-324, 1e-300, 1e5, 100_251, 100_253, 1e9, 1e300, math.MaxFloat64, math.Inf(1), math.NaN(), -1}
	for n := range 200 {
		r2 := make([]float64, n+4)
		for i := range r2 {
			r2[i] = math.Exp(20*stream.Float64() - 8)
			if stream.Float64() < 0.1 {
				r2[i] = special[stream.Uint64N(uint64(len(special)))]
			}
		}
		for _, keep := range []bool{true, false} {
			got, want := slices.Clone(r2), slices.Clone(r2)
			var gotSlopes, wantSlopes []float64
			if keep {
				gotSlopes, wantSlopes = make([]float64, n+4), make([]float64, n+4)
			}
			matern52(got[:n], gotSlopes)
			matern52Each(want[:n], wantSlopes)
			sameBits(t, r2, got, want)
			if keep {
				sameBits(t, r2, gotSlopes, wantSlopes)
			}
		}
	}
}

func sameBits(t *testing.T, from, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Errorf("of %v: got %v, want %v", from[i], got[i], want[i])
		}
	}
}

func BenchmarkMatern(b *testing.B) {
	r2, slopes := make([]float64, 100), make([]float64, 100)
	for b.Loop() {
		for i := range r2 {
			r2[i] = float64(i) / 10
		}
		matern52(r2, slopes)
	}
}
