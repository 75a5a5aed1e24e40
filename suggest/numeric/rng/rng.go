// Package rng has randomness that depends on nothing but what it is for: equal
// keys give equal numbers, in any process and at any parallelism.
package rng

import (
	"math"
	"math/bits"
)

// Key names a source of random numbers.
type Key uint64

// NewKey mixes a seed and words into a key.
func NewKey(seed uint64, words ...string) Key {
	h := mix(seed + golden)
	for _, word := range words {
		h = mix(h + uint64(len(word)))
		for i := range len(word) {
			h = mix(h + golden + uint64(word[i]))
		}
	}
	return Key(h)
}

// At is the key with the number i under this key.
func (k Key) At(i uint64) Key { return Key(mix(uint64(k) + (i+1)*golden)) }

const golden = 0x9e3779b97f4a7c15

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014) with the
// constants of Stafford's variant 13.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Stream is a sequence of random numbers: Philox4x32-10 of Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Use one stream for
// one purpose in one trial. It satisfies math/rand/v2's Source. It is not safe
// for use from several goroutines at once.
type Stream struct {
	key     [2]uint32
	counter [4]uint32 // block, block, trial, trial
	ready   uint64
	have    bool
}

// New is the stream for a trial of an algorithm under a seed, for one purpose.
func New(seed uint64, algorithm string, trial int, purpose string) *Stream {
	return NewKey(seed, algorithm, purpose).Stream(uint64(trial))
}

// Stream is the i-th stream under the key.
func (k Key) Stream(i uint64) *Stream {
	return &Stream{
		key:     [2]uint32{uint32(k), uint32(k >> 32)},
		counter: [4]uint32{2: uint32(i), 3: uint32(i >> 32)},
	}
}

// Uint64 is uniform over all numbers of 64 bits.
func (s *Stream) Uint64() uint64 {
	if s.have {
		s.have = false
		return s.ready
	}
	block := philox(s.counter, s.key)
	if s.counter[0]++; s.counter[0] == 0 {
		s.counter[1]++
	}
	s.ready, s.have = uint64(block[3])<<32|uint64(block[2]), true
	return uint64(block[1])<<32 | uint64(block[0])
}

// Float64 is uniform between 0 and 1; both ends are excluded.
func (s *Stream) Float64() float64 {
	return (float64(s.Uint64()>>12) + 0.5) / (1 << 52)
}

// Fill writes such numbers to u.
func (s *Stream) Fill(u []float64) {
	for i := range u {
		u[i] = s.Float64()
	}
}

// Uint64N is uniform in [0, n). It panics when n is 0.
func (s *Stream) Uint64N(n uint64) uint64 {
	if n == 0 {
		panic("rng: Uint64N of 0")
	}
	// Lemire, "Fast random integer generation in an interval" (2019).
	high, low := bits.Mul64(s.Uint64(), n)
	for low < n && low < -n%n {
		high, low = bits.Mul64(s.Uint64(), n)
	}
	return high
}

// NormFloat64 is standard normal.
func (s *Stream) NormFloat64() float64 {
	u := s.Float64()
	if u < 0.5 {
		return -math.Sqrt2 * math.Erfcinv(2*u)
	}
	return math.Sqrt2 * math.Erfcinv(2*(1-u))
}

// philox encrypts a counter.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for range 10 {
		high0, low0 := bits.Mul32(0xd2511f53, c[0])
		high1, low1 := bits.Mul32(0xcd9e8d57, c[2])
		c = [4]uint32{high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0}
		k[0] += 0x9e3779b9
		k[1] += 0xbb67ae85
	}
	return c
}
