package dense

import (
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// row of a kernel: height, then mean and inverse of each dimension.
func (k *Kernels) set(at int, row []float64) {
	for c, v := range row {
		k.column(c)[at] = v
	}
}

// Whatever was inserted and deleted before, the terms must have the bits of the
// plain sum, with vector instructions or without, and what is beyond the last
// kernel must not count.
func TestTermsHaveTheBitsOfThePlainSum(t *testing.T) {
	stream := rng.New(1, "dense", 0, "terms")
	for _, dims := range []int{0, 1, 2, 10, 33} {
		k := NewKernels(dims)
		var rows [][]float64
		for step := range 700 {
			switch {
			case step == 400:
				k.Clear()
				rows = nil
			case step == 401:
				k.Resize(70)
				for i := range 70 {
					rows = append(rows, random(stream, 1+2*dims))
					k.set(i, rows[i])
				}
			case len(rows) > 0 && stream.Uint64N(3) == 0:
				at := int(stream.Uint64N(uint64(len(rows))))
				k.Delete(at)
				rows = slices.Delete(rows, at, at+1)
			default:
				at := int(stream.Uint64N(uint64(len(rows) + 1)))
				k.Insert(at)
				rows = slices.Insert(rows, at, random(stream, 1+2*dims))
				k.set(at, rows[at])
			}
			if step%20 == 0 || step > 395 && step < 410 {
				checkTerms(t, k, rows, random(stream, dims))
			}
		}
	}
}

func checkTerms(t *testing.T, k *Kernels, rows [][]float64, x []float64) {
	t.Helper()
	if k.Len() != len(rows) {
		t.Fatalf("%d kernels, want %d", k.Len(), len(rows))
	}
	for from := 0; from < len(rows); from += 3 * Lanes {
		count := min(3*Lanes, len(rows)-from)
		out := make([]float64, (count+Lanes-1)/Lanes*Lanes)
		plain := slices.Clone(out)
		most, plainMost := k.Terms(from, x, out), k.terms(from, x, plain)
		want := math.Inf(-1)
		for i := range out {
			sum := math.Inf(-1)
			if i < count {
				row := rows[from+i]
				sum = row[0]
				for j, v := range x {
					u := float64((v - row[1+2*j]) * row[2+2*j])
					sum -= float64(u * u)
				}
				want = math.Max(want, sum)
			}
			if math.Float64bits(out[i]) != math.Float64bits(sum) || math.Float64bits(plain[i]) != math.Float64bits(sum) {
				t.Fatalf("%d dimensions, kernel %d of %d: %v and %v, want %v", len(x), from+i, len(rows), out[i], plain[i], sum)
			}
		}
		if most != want || plainMost != want {
			t.Fatalf("the largest is %v and %v, want %v", most, plainMost, want)
		}
	}
}
