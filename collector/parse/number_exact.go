package parse

import (
	"math"
	"math/bits"
)

// wholeTens are the powers of ten that 64 bits hold.
var wholeTens = [...]uint64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// quotient returns the float64 nearest to m / 10^f, where m is not 0 and f is
// less than len(wholeTens). short says that m, without zeros at its end, has the
// digits that identify the float64 and no more; false means unknown.
//
// Both are shifted until their highest bit is set, so that one division of 128
// by 64 bits gives 63 or 64 bits of the quotient, and its remainder tells
// whether more follow. Rounding these to 53 bits rounds once.
func quotient(m uint64, f int) (v float64, short bool) {
	shiftM, shiftD := bits.LeadingZeros64(m), bits.LeadingZeros64(wholeTens[f])
	d := wholeTens[f] << shiftD
	q, r := bits.Div64(m<<shiftM>>1, m<<shiftM<<63, d)
	sticky := q
	if r != 0 {
		sticky |= 1
	}
	rounded := float64(sticky)
	v = rounded * math.Float64frombits(uint64(1023+shiftD-shiftM-63)<<52)
	if rounded >= 1<<64 {
		return v, false
	}
	// In units of the last digit of m: how far v is from m, and half the distance
	// between v and its neighbours. The errors of this arithmetic are far below
	// the margin.
	nearest := uint64(rounded)
	if nearest&(nearest-1) == 0 {
		return v, false // the neighbour below is nearer
	}
	unit := float64(d) * math.Float64frombits(uint64(1023-63-shiftM)<<52)
	away := (float64(int64(nearest-q)) - float64(r)/float64(d)) * unit
	half := 512 * unit
	if q>>63 != 0 {
		half *= 2
	}
	const margin = 1e-6
	if math.Abs(away) > 0.5-margin {
		return v, false // another number of as many digits may be nearer
	}
	below := float64(m % 10)
	return v, below > half-away+margin && 10-below > half+away+margin
}
