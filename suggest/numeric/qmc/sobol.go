// Package qmc has low-discrepancy sequences: points that fill the unit box more
// evenly than random ones.
package qmc

import (
	_ "embed"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// MaxDimensions is how many dimensions there are direction numbers for.
const MaxDimensions = 512

//go:embed joe_kuo.txt
var joeKuo string

// Sobol is the Sobol sequence with the direction numbers of Joe and Kuo (2008)
// in the order of Gray codes (Antonov and Saleev 1979), with 32 bits a
// coordinate. Any point can be had by its index, in O(32) a coordinate. A Sobol
// does not change and may be shared.
type Sobol struct {
	directions [][32]uint32
	scrambles  []rng.Key // empty: not scrambled
}

// NewSobol is the plain sequence in the given number of dimensions, from 1 to
// MaxDimensions.
func NewSobol(dimensions int) (*Sobol, error) {
	if dimensions < 1 || dimensions > MaxDimensions {
		return nil, fmt.Errorf("a Sobol sequence has from 1 to %d dimensions, not %d", MaxDimensions, dimensions)
	}
	s := &Sobol{directions: make([][32]uint32, dimensions)}
	for bit := range 32 {
		s.directions[0][bit] = 1 << (31 - bit)
	}
	row := 1
	for line := range strings.Lines(joeKuo) {
		if row == dimensions {
			break
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		directions, err := parseDirections(line, row+1)
		if err != nil {
			return nil, err
		}
		s.directions[row] = directions
		row++
	}
	return s, nil
}

// NewScrambledSobol is the sequence under the random nested scrambling of Owen
// (1995): each point is uniform in the box, while the even spread of the
// sequence stays. The random bits are hashes of the key and of the digits
// before them, in place of stored permutations (as in Burley, "Practical
// hash-based Owen scrambling", JCGT 9(4), 2020). Different keys give
// independent scramblings.
func NewScrambledSobol(dimensions int, key rng.Key) (*Sobol, error) {
	s, err := NewSobol(dimensions)
	if err != nil {
		return nil, err
	}
	s.scrambles = make([]rng.Key, dimensions)
	for d := range s.scrambles {
		s.scrambles[d] = key.At(uint64(d))
	}
	return s, nil
}

// At writes the point with the given index into u, which has one place for each
// dimension. Coordinates of a scrambled sequence lie strictly between 0 and 1,
// those of a plain one in [0, 1).
func (s *Sobol) At(index uint32, u []float64) {
	gray := index ^ index>>1
	for d := range s.directions {
		var x uint32
		for g := gray; g != 0; g &= g - 1 {
			x ^= s.directions[d][bits.TrailingZeros32(g)]
		}
		if s.scrambles == nil {
			u[d] = float64(x) / (1 << 32)
			continue
		}
		u[d] = (float64(scramble(x, s.scrambles[d])) + 0.5) / (1 << 32)
	}
}

// scramble flips each bit or not, as a hash of the bits above it says.
func scramble(x uint32, key rng.Key) uint32 {
	y := x
	for bit := range 32 {
		// The marker above the digits tells prefixes of different length apart.
		prefix := uint64(1)<<bit | uint64(x)>>(32-bit)
		if key.At(prefix)>>63 == 1 {
			y ^= 1 << (31 - bit)
		}
	}
	return y
}

// parseDirections reads one row of the table and runs the recurrence of Bratley
// and Fox (1988) up to 32 bits.
func parseDirections(line string, dimension int) (v [32]uint32, err error) {
	fields := strings.Fields(line)
	numbers := make([]uint32, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 32)
		if err != nil {
			return v, fmt.Errorf("direction numbers of dimension %d: %w", dimension, err)
		}
		numbers[i] = uint32(n)
	}
	if len(numbers) < 4 || int(numbers[0]) != dimension || len(numbers) != 3+int(numbers[1]) {
		return v, fmt.Errorf("direction numbers of dimension %d: unexpected row %q", dimension, line)
	}
	degree, inner, m := int(numbers[1]), numbers[2], numbers[3:]
	for i := range v {
		if i < degree {
			v[i] = m[i] << (31 - i)
			continue
		}
		v[i] = v[i-degree] ^ v[i-degree]>>degree
		for k := 1; k < degree; k++ {
			v[i] ^= (inner >> (degree - 1 - k) & 1) * v[i-k]
		}
	}
	return v, nil
}
