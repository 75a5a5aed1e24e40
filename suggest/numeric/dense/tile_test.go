package dense

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func random(stream *rng.Stream, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = stream.NormFloat64()
	}
	return x
}

// The vector instructions must give the bits of the plain loop, for any shape
// and stride.
func TestMultiplyHasTheBitsOfThePlainLoop(t *testing.T) {
	stream := rng.New(1, "dense", 0, "tile")
	for rows := range 10 {
		for _, k := range []int{0, 1, 2, 7, 64, 131} {
			for _, transposed := range []bool{false, true} {
				a := strided{data: random(stream, rows*(k+3)+5), start: 5, rowStep: k + 3, columnStep: 1}
				if transposed {
					a.rowStep, a.columnStep = 1, rows
				}
				b, got := random(stream, k*Lanes), random(stream, rows*(Lanes+1))
				want := slices.Clone(got)
				multiply(rows, k, a, b, got, Lanes+1)
				for row := range rows {
					for j := range Lanes {
						sum := want[row*(Lanes+1)+j]
						for i := range k {
							sum += float64(a.data[a.start+row*a.rowStep+i*a.columnStep] * b[i*Lanes+j])
						}
						want[row*(Lanes+1)+j] = sum
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d rows, %d products, transposed %v: got %v, want %v", rows, k, transposed, got, want)
				}
			}
		}
	}
}

func TestMultiplyRowEqualsMultiply(t *testing.T) {
	stream := rng.New(2, "dense", 0, "tile")
	a := strided{data: random(stream, 100), rowStep: 50, columnStep: 1}
	b, got := random(stream, 50*Lanes), make([]float64, 2*Lanes)
	want := make([]float64, Lanes)
	multiply(2, 50, a, b, got, Lanes)
	multiplyRow(50, a, 1, b, want)
	if !slices.Equal(got[Lanes:], want) {
		t.Errorf("got %v, want %v", got[Lanes:], want)
	}
	if math.IsNaN(want[0]) {
		t.Error("NaN")
	}
}
