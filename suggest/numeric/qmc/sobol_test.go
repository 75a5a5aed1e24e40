package qmc

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func sobol(t testing.TB, dimensions int) *Sobol {
	t.Helper()
	s, err := NewSobol(dimensions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func scrambled(t testing.TB, dimensions int, seed uint64) *Sobol {
	t.Helper()
	s, err := NewScrambledSobol(dimensions, rng.NewKey(seed))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The first ten points in ten dimensions, as Joe and Kuo publish them beside
// their direction numbers.
func TestSobolPublishedPoints(t *testing.T) {
	want := [][]float64{
		{0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5},
		{0.75, 0.25, 0.25, 0.25, 0.75, 0.75, 0.25, 0.75, 0.75, 0.75},
		{0.25, 0.75, 0.75, 0.75, 0.25, 0.25, 0.75, 0.25, 0.25, 0.25},
		{0.375, 0.375, 0.625, 0.875, 0.375, 0.125, 0.375, 0.875, 0.875, 0.625},
		{0.875, 0.875, 0.125, 0.375, 0.875, 0.625, 0.875, 0.375, 0.375, 0.125},
		{0.625, 0.125, 0.875, 0.625, 0.625, 0.875, 0.125, 0.125, 0.125, 0.375},
		{0.125, 0.625, 0.375, 0.125, 0.125, 0.375, 0.625, 0.625, 0.625, 0.875},
		{0.1875, 0.3125, 0.9375, 0.4375, 0.5625, 0.3125, 0.4375, 0.9375, 0.9375, 0.3125},
		{0.6875, 0.8125, 0.4375, 0.9375, 0.0625, 0.8125, 0.9375, 0.4375, 0.4375, 0.8125},
	}
	s := sobol(t, 10)
	got := make([][]float64, len(want))
	for i := range got {
		got[i] = make([]float64, 10)
		s.At(uint32(i), got[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// From SciPy 1.17: qmc.Sobol(512, scramble=False, bits=32), point 12345, times
// 2^32.
func TestSobolFarPoint(t *testing.T) {
	u := make([]float64, MaxDimensions)
	sobol(t, MaxDimensions).At(12345, u)
	for d, want := range map[int]float64{
		0: 2752774144, 1: 3493593088, 2: 688652288, 99: 2314469376, 255: 2525757440, 510: 1821638656, 511: 3786670080,
	} {
		if got := u[d] * (1 << 32); got != want {
			t.Errorf("dimension %d: got %v, want %v", d, got, want)
		}
	}
}

func TestSobolDimensions(t *testing.T) {
	for _, d := range []int{-1, 0, MaxDimensions + 1} {
		if _, err := NewSobol(d); err == nil || !strings.Contains(err.Error(), fmt.Sprint(MaxDimensions)) {
			t.Errorf("%d dimensions: got %v, want an error with the limit", d, err)
		}
		if _, err := NewScrambledSobol(d, 0); err == nil {
			t.Errorf("%d scrambled dimensions: no error", d)
		}
	}
}

func TestDirectionNumbersAreRefusedWhenBroken(t *testing.T) {
	for name, row := range map[string]string{
		"a word":             "2 1 0 x",
		"too short":          "2 1 0",
		"too long":           "2 1 0 1 1",
		"of another one":     "3 1 0 1",
		"nothing":            "",
		"beyond 32 bits":     "2 1 0 4294967296",
		"a degree too large": "2 4000000000 0 1",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseDirections(row, 2); err == nil {
				t.Error("no error")
			}
		})
	}
}

// Among the first 2^m points of each dimension, scrambled or not, each interval
// of length 2^-m has exactly one.
func TestEachDimensionIsStratified(t *testing.T) {
	const points = 256
	for name, s := range map[string]*Sobol{
		"plain":           sobol(t, MaxDimensions),
		"scrambled":       scrambled(t, MaxDimensions, 1),
		"scrambled again": scrambled(t, MaxDimensions, 2),
	} {
		t.Run(name, func(t *testing.T) {
			seen := make([][points]bool, MaxDimensions)
			u := make([]float64, MaxDimensions)
			for i := range uint32(points) {
				s.At(i, u)
				for d, x := range u {
					cell := int(x * points)
					if seen[d][cell] {
						t.Fatalf("dimension %d: cell %d has two points", d, cell)
					}
					seen[d][cell] = true
				}
			}
		})
	}
}

// The first two dimensions are a (0, m, 2)-net in base 2: each box of 2^-a by
// 2^-(m-a) has exactly one of 2^m points. Scrambling must keep that.
func TestFirstTwoDimensionsAreANet(t *testing.T) {
	const m = 8
	for seed := range uint64(5) {
		s := scrambled(t, 2, seed)
		for a := range m + 1 {
			seen := map[[2]int]bool{}
			u := make([]float64, 2)
			for i := range uint32(1 << m) {
				s.At(i, u)
				seen[[2]int{int(u[0] * float64(int(1)<<a)), int(u[1] * float64(int(1)<<(m-a)))}] = true
			}
			if len(seen) != 1<<m {
				t.Errorf("seed %d: %d of %d boxes of 2^-%d by 2^-%d have a point", seed, len(seen), 1<<m, a, m-a)
			}
		}
	}
}

// Over many keys a scrambled point is uniform: each of its 32 bits is set half
// of the time, also given the bit above.
func TestScramblingIsFair(t *testing.T) {
	const keys = 20_000
	for _, x := range []uint32{0, 1, 0x80000000, 0xdeadbeef, math.MaxUint32} {
		var set, changed [32]int
		for k := range uint64(keys) {
			y := scramble(x, rng.NewKey(k))
			for b := range 32 {
				set[b] += int(y >> b & 1)
				changed[b] += bits.OnesCount32((y ^ y>>1) & (1 << b))
			}
		}
		// Five standard errors: 320 checks.
		bound := 5 * math.Sqrt(keys) / 2
		for b := range 32 {
			if math.Abs(float64(set[b])-keys/2) > bound || math.Abs(float64(changed[b])-keys/2) > bound {
				t.Errorf("%#x bit %d: set %d, unlike the one above %d of %d times", x, b, set[b], changed[b], keys)
			}
		}
	}
}

// Scrambled Sobol integrates a smooth function far better than random points,
// whose error is about sigma/sqrt(n).
func TestScrambledSobolIntegrates(t *testing.T) {
	const n, d = 1024, 6
	sum, u := 0.0, make([]float64, d)
	s := scrambled(t, d, 7)
	for i := range uint32(n) {
		s.At(i, u)
		product := 1.0
		for _, x := range u {
			product *= 1 + 0.5*(x-0.5) // integrates to 1; variance (1+1/48)^6-1 = 0.13
		}
		sum += product / n
	}
	if got, random := math.Abs(sum-1), math.Sqrt(0.13/n); got > random/10 {
		t.Errorf("error %v, random would have %v", got, random)
	}
}

func BenchmarkScrambledSobol(b *testing.B) {
	s := scrambled(b, 10, 1)
	u := make([]float64, 10)
	i := uint32(0)
	for b.Loop() {
		s.At(i, u)
		i++
	}
}
