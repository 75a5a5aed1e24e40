package parse

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// wantDecimal is the shortest decimal.
func wantDecimal(t testing.TB, f float32) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

func TestDecimalIsTheShortestForm(t *testing.T) {
	check := func(f float32) {
		got, want := decimal(f), wantDecimal(t, f)
		if float32(got) == f && len(float(got)) == len(float(want)) {
			return // of two decimals that are equally short and near, either will do
		}
		if !same(got, want) {
			t.Fatalf("decimal(%v, bits %x) = %v, want %v", f, math.Float32bits(f), got, want)
		}
	}
	t.Run("of any bits", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 300_000 {
			check(math.Float32frombits(random.Uint32()))
		}
	})
	t.Run("of losses and rates", func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		for range 300_000 {
			check(float32(math.Exp(random.NormFloat64() * 4)))
		}
	})
	t.Run("of short decimals", func(t *testing.T) {
		for n := range 10_000 {
			for _, d := range []float64{1, 1e2, 1e4, 1e5, 1e9} {
				check(float32(float64(n) / d))
				check(-float32(float64(n) * d))
			}
		}
	})
	t.Run("of powers of two and their neighbours", func(t *testing.T) {
		for exponent := range uint32(256) {
			for d := -3; d <= 3; d++ {
				bits := uint32(int64(exponent)<<23 + int64(d))
				check(math.Float32frombits(bits))
				check(math.Float32frombits(bits | 1<<31))
			}
		}
	})
}

func BenchmarkDecimal(b *testing.B) {
	random := rand.New(rand.NewPCG(3, 4))
	values := make([]float32, 1024)
	for i := range values {
		values[i] = random.Float32()
	}
	sum, i := 0.0, 0
	for b.Loop() {
		sum += decimal(values[i&1023])
		i++
	}
	if sum == 0 {
		b.Fatal("no value")
	}
}
