package rng

import "math/bits"

// Permutation is a random order of the numbers in [0, n) that needs no memory:
// a Feistel network on the next even number of bits, walked until it is inside
// (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
type Permutation struct {
	n    uint64
	half int // bits in each half
	key  Key
}

// NewPermutation is the permutation of [0, n) that the key names; n is at most
// 2^63.
func NewPermutation(n uint64, key Key) Permutation {
	width := 0
	if n > 1 {
		width = bits.Len64(n - 1)
	}
	return Permutation{n: n, half: max(1, (width+1)/2), key: key}
}

// At is the i-th number in the random order; i must lie in [0, n).
func (p Permutation) At(i uint64) uint64 {
	if i >= p.n {
		panic("rng: permutation index out of range")
	}
	for {
		if i = p.round(i); i < p.n {
			return i
		}
	}
}

func (p Permutation) round(i uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	left, right := i>>p.half, i&mask
	for round := range uint64(8) {
		left, right = right, left^uint64(p.key.At(round<<32|right))>>32&mask
	}
	return left<<p.half | right
}
