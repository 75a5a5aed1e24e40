package gp

import (
	"math"

	"github.com/vernier-ml/vernier/suggest/numeric/dense"
)

// The exponential function of this package: exp(-x) for x >= 0, within 4 units
// in the last place, and at least exp(-708). With -x = k ln2/64 + r it is
// 2^(k/64) exp(r), and |r| <= ln2/128, so that a short polynomial does. It is
// written out where it is used, as a call costs as much. Unlike math.Exp, which
// uses fused instructions where there are, it has the same bits on each
// processor.
const (
	perStep = 64 / math.Ln2
	high    = 0x1.62e42fefap-7 // ln2/64, the upper bits: k*high is exact
	low     = math.Ln2/64 - high
	round   = 3 << 51 // brings the whole part to the low bits
	largest = 708
)

// decay is exp(-x).
func decay(x float64) float64 {
	x = min(x, largest)
	shifted := float64(-x*perStep) + round
	k := int64(math.Float64bits(shifted)<<13) >> 13
	whole := shifted - round
	r := float64(-x-float64(whole*high)) - float64(whole*low)
	r2 := float64(r * r)
	p := 1 + r + float64(r2*(0.5+float64(r*(1.0/6))+float64(r2*(1.0/24+float64(r*(1.0/120))))))
	return p * roots[k&63] * math.Float64frombits(uint64(k>>6+1023)<<52)
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

const sqrt5 = 2.23606797749978969640917366873

// maternTable are the numbers that vector instructions need, in their order.
type maternTable [15]float64

var maternNumbers = maternTable{
	sqrt5, largest, -perStep, round, high, low, 1.0 / 6, 0.5, 1.0 / 120, 1.0 / 24, 1, 1.0 / 3, 5.0 / 3,
	math.Copysign(0, -1), math.Float64frombits(1023 * 64),
}

// matern52 is Matérn's kernel with smoothness 5/2 (Rasmussen and Williams,
// "Gaussian processes for machine learning", 2006, equation 4.17).
func matern52(r2, slopes []float64) {
	if slopes != nil {
		slopes = slopes[:len(r2)]
	}
	if first := len(r2) &^ 3; first > 0 && dense.Vectorized() {
		var to *float64
		if slopes != nil {
			to = &slopes[0]
			slopes = slopes[first:]
		}
		matern52x4(first, &maternNumbers, &roots, &r2[0], to)
		r2 = r2[first:]
	}
	matern52Each(r2, slopes)
}

// matern52Each is matern52 in plain Go.
func matern52Each(r2, slopes []float64) {
	keep := slopes != nil
	if keep {
		slopes = slopes[:len(r2)]
	}
	for i, v := range r2 {
		r := min(float64(sqrt5*math.Sqrt(v)), largest)
		shifted := float64(-r*perStep) + round
		k := int64(math.Float64bits(shifted)<<13) >> 13
		whole := shifted - round
		t := float64(-r-float64(whole*high)) - float64(whole*low)
		t2 := float64(t * t)
		p := 1 + t + float64(t2*(0.5+float64(t*(1.0/6))+float64(t2*(1.0/24+float64(t*(1.0/120))))))
		e := p * roots[k&63] * math.Float64frombits(uint64(k>>6+1023)<<52)
		r2[i] = (1 + r + float64(float64(r*r)*(1.0/3))) * e
		if keep {
			slopes[i] = (5.0 / 3) * (1 + r) * e
		}
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
