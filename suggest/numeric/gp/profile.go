package gp

import "math"

// decay is exp(-x) for x >= 0, within 2 units in the last place; 0 where the
// result would be denormal. It is faster than math.Exp and has the same bits on
// each processor, as math.Exp, which uses fused instructions where there are,
// has not.
func decay(x float64) float64 {
	if !(x < 708) {
		if x != x {
			return x
		}
		return 0
	}
	// -x = k ln2/64 + r with |r| <= ln2/128.
	const (
		perStep = 64 / math.Ln2
		high    = 0x1.62e42fefap-7 // ln2/64, the upper bits: k*high is exact
		low     = math.Ln2/64 - high
		round   = 3 << 51
	)
	shifted := float64(-x*perStep) + round
	k := int64(math.Float64bits(shifted)<<13) >> 13
	whole := shifted - round
	r := float64(-x-float64(whole*high)) - float64(whole*low)
	r2 := float64(r * r)
	p := 1 + r + float64(r2*(0.5+float64(r*(1.0/6))+float64(r2*(1.0/24+float64(r*(1.0/120))))))
	scale := math.Float64frombits(uint64(k>>6+1023) << 52)
	return p * roots[k&63] * scale
}

// roots are the powers 2^(i/64).
var roots = powers()

func powers() (out [64]float64) {
	for i := range out {
		out[i] = math.Pow(2, float64(i)/64)
	}
	return out
}

// A profile gives, from squared distances r2, the correlations and their
// slopes -2 d/d(r2), in place: r2 is overwritten with the correlations. slopes
// may be nil.
type profile func(r2, slopes []float64)

var sqrt5 = math.Sqrt(5)

// matern52 is Matérn's kernel with smoothness 5/2 (Rasmussen and Williams,
// "Gaussian processes for machine learning", 2006, equation 4.17).
func matern52(r2, slopes []float64) {
	if slopes == nil {
		for i, v := range r2 {
			r := float64(sqrt5 * math.Sqrt(v))
			r2[i] = (1 + r + float64(r*r)*(1.0/3)) * decay(r)
		}
		return
	}
	slopes = slopes[:len(r2)]
	for i, v := range r2 {
		r := float64(sqrt5 * math.Sqrt(v))
		e := decay(r)
		r2[i] = (1 + r + float64(r*r)*(1.0/3)) * e
		slopes[i] = (5.0 / 3) * (1 + r) * e
	}
}

// product is exp(-r2): for choices alone, a product of one factor for each
// dimension that differs.
func product(r2, slopes []float64) {
	for i, v := range r2 {
		e := decay(v)
		r2[i] = e
		if slopes != nil {
			slopes[i] = 2 * e
		}
	}
}
