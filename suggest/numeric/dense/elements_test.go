package dense

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// The vector instructions must give the bits of plain loops, for any length and
// wherever the slices begin, and may not touch what lies behind.
func TestElementsHaveTheBitsOfPlainLoops(t *testing.T) {
	stream := rng.New(3, "dense", 0, "elements")
	x := [4]float64{0.3, -2, 1e-3, math.Pi}
	for n := range 35 {
		columns := [4][]float64{}
		for k := range columns {
			columns[k] = random(stream, n+6)[k:]
		}
		a, b, c, d := columns[0], columns[1], columns[2], columns[3]
		pairs, start := random(stream, 2*n), random(stream, n+3)
		got := map[string][]float64{}
		do := func(name string, f func(out []float64)) {
			got[name] = slices.Clone(start)
			f(got[name][:n])
		}
		do("four squares", func(out []float64) { AddSquares4(&x, a, b, c, d, out) })
		do("two squares", func(out []float64) { AddSquares2(x[0], x[1], a, b, out) })
		do("two products", func(out []float64) { AddProducts2(x[0], x[1], a, b, out) })
		do("quadratic", func(out []float64) { AddQuadratic(x[3], a, out) })
		do("scale", func(out []float64) { Scale(x[3], out) })
		for name, each := range map[string]func(i int) float64{
			"four squares": func(i int) float64 {
				p, q, r, s := x[0]-a[i], x[1]-b[i], x[2]-c[i], x[3]-d[i]
				left, right := float64(p*p)+float64(q*q), float64(r*r)+float64(s*s)
				return start[i] + (left + right)
			},
			"two squares": func(i int) float64 {
				p, q := x[0]-a[i], x[1]-b[i]
				return start[i] + (float64(p*p) + float64(q*q))
			},
			"two products": func(i int) float64 { return start[i] + (float64(x[0]*a[i]) + float64(x[1]*b[i])) },
			"quadratic":    func(i int) float64 { return start[i] + float64(x[3]*float64(a[i]*(a[i]+2))) },
			"scale":        func(i int) float64 { return start[i] * x[3] },
		} {
			want := slices.Clone(start)
			for i := range n {
				want[i] = each(i)
			}
			if !slices.Equal(got[name], want) {
				t.Errorf("%s, %d elements: got %v, want %v", name, n, got[name], want)
			}
		}
		var want [8]float64
		for i := range n {
			for k := range columns {
				want[2*k] += float64(pairs[2*i] * columns[k][i])
				want[2*k+1] += float64(pairs[2*i+1] * columns[k][i])
			}
		}
		if got := PairSums(pairs, &columns); got != want {
			t.Errorf("pair sums, %d elements: got %v, want %v", n, got, want)
		}
	}
}

func TestWeightedSquaresHaveTheBitsOfThePlainLoop(t *testing.T) {
	stream := rng.New(4, "dense", 0, "squares")
	for n := range 20 {
		weights := random(stream, 4*n)
		x := [16]float64(random(stream, 16))
		var columns [4][]float64
		var want [16]float64
		for k := range columns {
			columns[k] = random(stream, n+2)
			for i := range n {
				for q := range 4 {
					d := x[4*k+q] - columns[k][i]
					want[4*k+q] += float64(float64(weights[4*i+q]*d) * d)
				}
			}
		}
		if got := WeightedSquares(weights, &x, &columns); got != want {
			t.Errorf("%d elements: got %v, want %v", n, got, want)
		}
	}
}

// What is no number stays none.
func TestElementsKeepWhatIsNoNumber(t *testing.T) {
	for i := range 9 {
		a, out := make([]float64, 9), make([]float64, 9)
		a[i] = math.NaN()
		AddSquares4(&[4]float64{}, a, a, a, a, out)
		AddSquares2(0, 0, a, a, out)
		AddProducts2(1, 1, a, a, out)
		AddQuadratic(1, a, out)
		Scale(2, out)
		for j, v := range out {
			if math.IsNaN(v) != (i == j) {
				t.Error(fmt.Sprint("element ", j, " is ", v, " where element ", i, " is no number"))
			}
		}
	}
}
