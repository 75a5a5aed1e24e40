package parse

import (
	"math"
	"strconv"
)

// tens are the powers of ten that a float64 holds exactly.
var tens = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
	1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// decimal widens a float by way of its shortest decimal: the result is what
// strconv makes of the number's shortest form.
//
// Decimals with ten digits or less that lie between the neighbours' halfway
// points are whole numbers between two bounds, once scaled. The one that ends in
// the most zeros is the shortest. Scaling rounds twice, which moves a bound by
// less than 1e-5; where that could matter, strconv decides.
func decimal(f float32) float64 {
	w := float64(f)
	a := math.Abs(w)
	if a < 1<<24 && a == math.Trunc(a) {
		return w
	}
	bits := math.Float32bits(f)
	e := int(bits>>23&0xff) - 127
	k := e * 1233 >> 12 // the power of ten of a, or one less
	if k < -14 || k > 29 {
		return slowDecimal(f)
	}
	half := math.Float64frombits(uint64(e-24+1023) << 52) // half the distance to the next float
	below := half
	if bits&(1<<23-1) == 0 {
		below /= 2
	}
	x, lo, hi := scaled(a, 8-k), scaled(a-below, 8-k), scaled(a+half, 8-k)
	l, h := int64(math.Ceil(lo)), int64(math.Floor(hi))
	if near(lo) || near(hi) || l > h {
		return slowDecimal(f)
	}
	unit := int64(1)
	for (l+9)/10 <= h/10 {
		l, h = (l+9)/10, h/10
		unit *= 10
	}
	x /= float64(unit)
	if near(x*2) && !near(x) {
		return slowDecimal(f) // halfway between two of them
	}
	shortest := min(max(int64(x+0.5), l), h) * unit
	return math.Copysign(scaled(float64(shortest), k-8), w)
}

// scaled returns v times ten to the n, for n from -22 to 22, rounded once.
func scaled(v float64, n int) float64 {
	if n < 0 {
		return v / tens[-n]
	}
	return v * tens[n]
}

// near reports whether v, at most 1e11, could be a whole number but for
// rounding.
func near(v float64) bool { return math.Abs(v-math.RoundToEven(v)) < 1e-4 }

func slowDecimal(f float32) float64 {
	if w := float64(f); math.IsNaN(w) || math.IsInf(w, 0) {
		return w
	}
	var buf [32]byte
	v, _ := strconv.ParseFloat(string(strconv.AppendFloat(buf[:0], float64(f), 'g', -1, 32)), 64) // a float32 is in range
	return v
}
