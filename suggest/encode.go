package suggest

import "math"

// scale maps the numbers of a parameter to the unit interval and back, such
// that the parameter's distribution becomes the uniform one. For numbers on a
// grid the ends are half a step outside, so that the first and the last value
// get as much room as the others.
type scale struct {
	log    bool
	normal bool
	a, b   float64 // the ends; logarithms when log

	// For normal: mean and standard deviation, and what the normal has below a,
	// between a and b, and above b.
	mu, sigma            float64
	below, within, above float64
}

// newScale makes the scale for numbers from lo to last at the given step (0:
// continuous). The distribution's moments come from min and max as the user
// wrote them. lo < last must hold, and lo > 0 for a log distribution.
func newScale(d Distribution, lo, last, upper, step float64) scale {
	s := scale{
		log:    d == LogUniform || d == LogNormal,
		normal: d == Normal || d == LogNormal,
	}
	low, high := lo-step/2, last+step/2
	if s.log && low <= 0 {
		low = lo * (lo / (lo + step/2)) // as far below lo, on the log scale, as the upper edge of its cell is above
	}
	s.a, s.b = s.in(low), s.in(high)
	if s.normal {
		l, h := s.in(lo), s.in(upper)
		s.mu, s.sigma = l+(h-l)/2, (h-l)/6
		s.below = normalBelow((s.a - s.mu) / s.sigma)
		s.above = normalBelow((s.mu - s.b) / s.sigma)
		s.within = 1 - s.below - s.above
	}
	return s
}

func (s scale) in(x float64) float64 {
	switch {
	case s.log && x < 0x1p-1022: // of which math.Log makes -709 on amd64, whatever they are
		return math.Log(x*0x1p60) - 60*math.Ln2
	case s.log:
		return math.Log(x)
	}
	return x
}

// encode maps a number to the unit interval.
func (s scale) encode(x float64) float64 {
	t := s.in(x)
	if !s.normal {
		return clampUnit((t - s.a) / (s.b - s.a))
	}
	z := (t - s.mu) / s.sigma
	if z > 0 {
		return clampUnit(1 - (normalBelow(-z)-s.above)/s.within)
	}
	return clampUnit((normalBelow(z) - s.below) / s.within)
}

// decode is the inverse of encode.
func (s scale) decode(u float64) float64 {
	t := s.a + u*(s.b-s.a)
	if s.normal {
		t = s.mu + s.sigma*s.quantile(u)
	}
	t = math.Min(math.Max(t, s.a), s.b)
	if s.log {
		return math.Exp(t)
	}
	return t
}

// quantile of the truncated standard normal. Each half is computed from its
// own tail, so that no digits are lost near 1.
func (s scale) quantile(u float64) float64 {
	p := s.below + u*s.within
	if p <= 0.5 {
		return -math.Sqrt2 * math.Erfcinv(2*p)
	}
	q := s.above + (1-u)*s.within
	return math.Sqrt2 * math.Erfcinv(2*q)
}

// normalBelow is the standard normal distribution function.
func normalBelow(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// clampUnit brings u into [0, 1]; NaN becomes 0.
func clampUnit(u float64) float64 {
	if u >= 1 {
		return 1
	}
	if u > 0 {
		return u
	}
	return 0
}

// Encode maps a value of the parameter to the unit interval, such that the
// parameter's distribution becomes uniform. A value among n choices sits in the
// middle of the n-th part that it has; the only value of a parameter is at 0.5.
// v must be InSpace.
func (p Parameter) Encode(v Value) float64 {
	switch {
	case p.count == 1:
		return 0.5
	case p.choices != nil:
		return (float64(v.index) + 0.5) / float64(p.count)
	}
	return p.scale.encode(v.number)
}

// Decode maps a number of the unit interval to the value of the parameter that
// has it in its share. Numbers outside are taken as the nearer end, NaN as 0.
func (p Parameter) Decode(u float64) Value {
	u = clampUnit(u)
	switch {
	case p.count == 1:
		return p.At(0)
	case p.choices != nil:
		return p.At(min(int64(u*float64(p.count)), p.count-1))
	case p.grid == nil && u == 0:
		return p.continuous(p.min)
	case p.grid == nil && u == 1:
		return p.continuous(p.max)
	case u == 1: // exactly the end, also where the numbers are too many to tell apart
		return p.At(p.count - 1)
	case p.grid != nil:
		k := math.Floor((p.scale.decode(u)-p.grid.lo)/p.grid.step + 0.5)
		return p.At(int64(math.Min(math.Max(k, 0), float64(p.count-1))))
	}
	return p.continuous(p.scale.decode(u))
}

// Cell is the part of the unit interval that belongs to the value with the
// index i, which must lie in [0, Count). Its length is the value's probability.
func (p Parameter) Cell(i int64) (lo, hi float64) {
	return p.edge(i), p.edge(i + 1)
}

// edge is where the cell of the index i begins.
func (p Parameter) edge(i int64) float64 {
	switch {
	case i <= 0:
		return 0
	case i >= p.count:
		return 1
	case p.choices != nil:
		return float64(i) / float64(p.count)
	}
	return p.scale.encode(p.grid.lo + (float64(i)-0.5)*p.grid.step)
}

// usable says whether the scale has any extent in double precision.
func (s scale) usable() bool {
	return s.b > s.a && (!s.normal || s.sigma > 0 && s.within > 0)
}
