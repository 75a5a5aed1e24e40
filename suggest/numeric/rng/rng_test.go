package rng

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The known answers are those that Salmon et al. publish with their code
// (Random123, kat_vectors, philox4x32 with 10 rounds).
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = math.MaxUint32
	cases := map[string]struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		"zeros": {want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		"ones": {
			[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		"digits of pi": {
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, philox(c.counter, c.key)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The numbers are part of what users see: with the same seed, a later version
// must propose the same points.
func TestStreamsNeverChange(t *testing.T) {
	s := New(42, "random", 7, "point")
	got := fmt.Sprintf("%#x %#x %#x %.15f", s.Uint64(), s.Uint64(), s.Uint64(), s.Float64())
	const want = "0xc4594a33adef4d85 0x2d04e3d4d15af327 0xf0aba7aef2de028f 0.437215868557120"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStreamsOfDifferentKeysDiffer(t *testing.T) {
	seen := map[uint64]string{}
	note := func(name string, s *Stream) {
		x := s.Uint64()
		if other, ok := seen[x]; ok {
			t.Errorf("%s begins as %s does", name, other)
		}
		seen[x] = name
	}
	for seed := range uint64(20) {
		for trial := range 20 {
			for _, algorithm := range []string{"random", "sobol", ""} {
				for _, purpose := range []string{"point", "", "random"} {
					note(fmt.Sprint(seed, algorithm, trial, purpose), New(seed, algorithm, trial, purpose))
				}
			}
		}
	}
	note("words joined", NewKey(0, "ab", "c").Stream(0))
	note("words joined elsewhere", NewKey(0, "a", "bc").Stream(0))
	note("a word more", NewKey(0, "a", "bc", "").Stream(0))
}

func TestBlocksDoNotRepeat(t *testing.T) {
	s := New(1, "a", 0, "b")
	s.counter[0] = math.MaxUint32 // the next block carries into the second word
	seen := map[uint64]bool{}
	for range 1000 {
		seen[s.Uint64()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("%d different numbers of 1000", len(seen))
	}
	if s.counter[1] != 1 || s.counter[2] != 0 {
		t.Errorf("the counter is %v", s.counter)
	}
}

func TestMomentsAreRight(t *testing.T) {
	const n = 200_000
	s := New(3, "moments", 0, "")
	var uniform, square, normal, normalSquare, fourth float64
	for range n {
		u, z := s.Float64(), s.NormFloat64()
		if u <= 0 || u >= 1 {
			t.Fatalf("%v is not between 0 and 1", u)
		}
		uniform += u / n
		square += u * u / n
		normal += z / n
		normalSquare += z * z / n
		fourth += z * z * z * z / n
	}
	// Bounds of four standard errors: sqrt(Var/n).
	for name, c := range map[string]struct{ got, want, variance float64 }{
		"mean of uniform":          {uniform, 0.5, 1.0 / 12},
		"second moment of uniform": {square, 1.0 / 3, 4.0 / 45},
		"mean of normal":           {normal, 0, 1},
		"variance of normal":       {normalSquare, 1, 2},
		"fourth moment of normal":  {fourth, 3, 96},
	} {
		if bound := 4 * math.Sqrt(c.variance/n); math.Abs(c.got-c.want) > bound {
			t.Errorf("%s is %v, want %v within %v", name, c.got, c.want, bound)
		}
	}
}

func TestUint64NIsFair(t *testing.T) {
	s := New(4, "fair", 0, "")
	const n, draws = 7, 70_000
	var counts [n]float64
	for range draws {
		counts[s.Uint64N(n)]++
	}
	chi := 0.0
	for _, c := range counts {
		chi += (c - draws/n) * (c - draws/n) / (draws / n)
	}
	if chi > 22.46 { // the 0.999 quantile of chi-square with 6 degrees of freedom
		t.Errorf("chi-square %v, counts %v", chi, counts)
	}
	if got := s.Uint64N(1); got != 0 {
		t.Errorf("the only number below 1 is %d", got)
	}
	for range 1000 {
		if got := s.Uint64N(1<<63 + 1); got > 1<<63 {
			t.Errorf("%d is out of range", got)
		}
	}
}

func TestPermutation(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 4, 5, 16, 17, 100, 1023, 1024, 1025, 30_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			seen := make([]bool, n)
			p := NewPermutation(n, NewKey(n))
			for i := range n {
				j := p.At(i)
				if j >= n || seen[j] {
					t.Fatalf("At(%d) = %d: out of range or seen before", i, j)
				}
				seen[j] = true
			}
		})
	}
}

func TestPermutationOfHugeSets(t *testing.T) {
	for _, n := range []uint64{1 << 62, 1<<63 - 25, 1 << 63} {
		p := NewPermutation(n, NewKey(9))
		seen := map[uint64]bool{}
		for i := range uint64(2000) {
			j := p.At(n - 1 - i)
			if j >= n || seen[j] {
				t.Fatalf("At(%d) of %d = %d: out of range or seen before", n-1-i, n, j)
			}
			seen[j] = true
		}
	}
}

// Each number should come first equally often over the keys.
func TestPermutationsAreFair(t *testing.T) {
	const n, keys = 6, 12_000
	var counts [n][n]float64
	for k := range uint64(keys) {
		p := NewPermutation(n, NewKey(k))
		for i := range uint64(n) {
			counts[i][p.At(i)]++
		}
	}
	for i, row := range counts {
		chi := 0.0
		for _, c := range row {
			chi += (c - keys/n) * (c - keys/n) / (keys / n)
		}
		if chi > 25 { // above the 0.999 quantile (20.5) with 5 degrees of freedom, six rows
			t.Errorf("place %d: chi-square %v, counts %v", i, chi, row)
		}
	}
}

func BenchmarkUint64(b *testing.B) {
	s := New(1, "a", 0, "b")
	for b.Loop() {
		s.Uint64()
	}
}

func BenchmarkPermutation(b *testing.B) {
	p := NewPermutation(1_000_003, NewKey(1))
	i := uint64(0)
	for b.Loop() {
		p.At(i % p.n)
		i++
	}
}
