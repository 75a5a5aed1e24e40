package suggest

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// maxWhole bounds whole numbers: up to here a float64 holds each exactly.
const maxWhole = 1 << 53

var errNotANumber = errors.New("not a finite decimal number")

// number is a number as written: its value, and its decimal digits as
// coefficient*10^exponent when there are at most 18 of them.
type number struct {
	value       float64
	exact       bool
	coefficient int64
	exponent    int
}

// parseNumber reads a finite decimal number. It refuses what Go's parser
// allows beyond that: infinities, hexadecimal, underscores.
func parseNumber(text string) (number, error) {
	for _, c := range text {
		if !strings.ContainsRune("+-.0123456789eE", c) {
			return number{}, errNotANumber
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return number{}, errNotANumber
	}
	n := number{value: f}
	if f == 0 {
		n.value, n.exact = 0, true
		return n, nil
	}
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		// Out of range is impossible for a finite number that is not 0, but
		// for a mantissa of absurd length; that is then not exact.
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil {
			return n, nil
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole, "+-") + fraction
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	short = strings.TrimLeft(short, "0")
	if len(short) > 18 {
		return n, nil
	}
	c, err := strconv.ParseInt(short, 10, 64)
	if err != nil {
		return n, nil
	}
	if f < 0 {
		c = -c
	}
	n.exact, n.coefficient, n.exponent = true, c, exponent
	return n, nil
}

// isWhole says whether the number is whole and not too large to be held
// exactly.
func (n number) isWhole() bool {
	return n.exact && n.exponent >= 0 && math.Abs(n.value) <= maxWhole
}

// units is the number times 10^places; ok is false when that is not whole or
// too large to be held exactly.
func (n number) units(places int) (units int64, ok bool) {
	if !n.exact || n.exponent+places < 0 {
		return 0, false
	}
	units = n.coefficient
	for range n.exponent + places {
		if units == 0 {
			break
		}
		if units > maxWhole || units < -maxWhole {
			return 0, false
		}
		units *= 10
	}
	return units, units <= maxWhole && units >= -maxWhole
}

// formatFloat is the shortest decimal that reads back as x, with an exponent
// only for very small and very large numbers.
func formatFloat(x float64) string {
	if x == 0 {
		return "0"
	}
	if a := math.Abs(x); a >= 1e-4 && a < 1e16 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// grid is the numbers lo, lo+step, lo+2*step ... computed exactly in decimal,
// so that 0.01+2*0.01 prints 0.03.
type grid struct {
	lo, step, hi float64
	whole        bool

	// When unit is not 0, the k-th number is (loUnits+k*stepUnits)/unit, all of
	// them whole and at most 2^53, so that one division rounds right. Otherwise
	// lo and step have too many digits together, and float64 must do.
	loUnits, stepUnits int64
	unit               float64
}

// newGrid makes the grid from lo with the given step, and says how many numbers
// of it are not above hi; that count may be too large to be used.
func newGrid(lo, step, hi number, whole bool) (g *grid, count float64) {
	g = &grid{lo: lo.value, step: step.value, hi: hi.value, whole: whole}
	places := max(0, -lo.exponent, -step.exponent, -hi.exponent)
	l, okLo := lo.units(places)
	s, okStep := step.units(places)
	h, okHi := hi.units(places)
	if okLo && okStep && okHi && places <= 22 { // 10^22 is the last power of ten that is a float64
		g.loUnits, g.stepUnits, g.unit = l, s, math.Pow10(places)
		return g, float64((h-l)/s) + 1
	}
	steps := (hi.value - lo.value) / step.value
	return g, math.Floor(steps+1e-9) + 1
}

// at is the k-th number.
func (g *grid) at(k int64) float64 {
	if g.unit != 0 {
		return float64(g.loUnits+k*g.stepUnits) / g.unit
	}
	return math.Min(math.FMA(float64(k), g.step, g.lo), g.hi)
}

// index finds the k in [0, count) with the k-th number equal to x, but for
// rounding noise of at most a billionth of the step or a few units in the last
// place of a float64. Whole numbers have no noise.
func (g *grid) index(x float64, count int64) (k int64, ok bool) {
	f := math.Round((x - g.lo) / g.step)
	if !(f >= 0 && f < float64(count)) {
		return 0, false
	}
	k = int64(f)
	y := g.at(k)
	if g.whole {
		return k, x == y
	}
	return k, math.Abs(x-y) <= math.Max(1e-9*g.step, 2*ulp(y))
}

// text writes a number of the grid.
func (g *grid) text(x float64) string {
	if g.whole {
		return strconv.FormatInt(int64(x), 10)
	}
	return formatFloat(x)
}

// ulp is the distance from |x| to the next larger float64.
func ulp(x float64) float64 {
	x = math.Abs(x)
	return math.Nextafter(x, math.Inf(1)) - x
}
