// Package plot draws charts of experiments: as text in a terminal, and as SVG, PNG or
// HTML.
package plot

import (
	"math"
	"slices"
	"strconv"
)

// Shape is how a series is drawn.
type Shape int

// The shapes of a series.
const (
	Points Shape = iota
	Stars
	Line
)

// Series is a set of points. Those that are not finite are left out, and interrupt a
// line.
type Series struct {
	Name  string
	Shape Shape
	X, Y  []float64
	// Faint is drawn behind the others, in grey.
	Faint bool
}

// Tick is a labelled place of an axis.
type Tick struct {
	At    float64
	Label string
	// Low and High are the ends of an axis of its own that stands there.
	Low, High string
}

// Axis describes an axis.
type Axis struct {
	Label string
	Log   bool
	// Whole says that there are only whole numbers.
	Whole bool
	// Near leaves the far outliers of points out of the range of y, in text: they are
	// drawn at its edge.
	Near bool
	// Ticks replace those that are chosen; their range is that of the axis.
	Ticks []Tick
}

// Bar is a part of a whole, from 0 to 1.
type Bar struct {
	Label string
	Share float64
}

// Chart has either series or bars.
type Chart struct {
	Title string
	// Note is a line below the title.
	Note   string
	X, Y   Axis
	Series []Series
	// Each is what the names of the series are numbers of.
	Each string
	Bars []Bar
}

// scale maps values to 0 to 1.
type scale struct {
	low, high float64
	log       bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		return (math.Log(v) - math.Log(s.low)) / (math.Log(s.high) - math.Log(s.low))
	}
	return (v - s.low) / (s.high - s.low)
}

// value is the inverse of at.
func (s scale) value(u float64) float64 {
	if s.log {
		return math.Exp(math.Log(s.low) + u*(math.Log(s.high)-math.Log(s.low)))
	}
	return s.low + u*(s.high-s.low)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// drawn says whether a point can be drawn on the axes.
func (c Chart) drawn(x, y float64) bool {
	return finite(x) && finite(y) && (!c.X.Log || x > 0) && (!c.Y.Log || y > 0)
}

// Empty says that there is nothing to draw.
func (c Chart) Empty() bool {
	for _, s := range c.Series {
		for i := range s.X {
			if c.drawn(s.X[i], s.Y[i]) {
				return false
			}
		}
	}
	return len(c.Bars) == 0
}

// scales are those of the axes, with some room above and below the values of y.
func (c Chart) scales() (x, y scale) {
	x, y = scale{math.Inf(1), math.Inf(-1), c.X.Log}, scale{math.Inf(1), math.Inf(-1), c.Y.Log}
	for _, s := range c.Series {
		for i := range s.X {
			if c.drawn(s.X[i], s.Y[i]) {
				x.low, x.high = min(x.low, s.X[i]), max(x.high, s.X[i])
				y.low, y.high = min(y.low, s.Y[i]), max(y.high, s.Y[i])
			}
		}
	}
	for _, t := range c.X.Ticks {
		x.low, x.high = min(x.low, t.At), max(x.high, t.At)
	}
	return x.widened(), y.widened()
}

// near is the scale of y without the far outliers of points, of diverged trials for
// example, that would flatten all others. Far is five times the middle 80 % beyond it.
// The end of a line, which is the best trial's, is never left out.
func (c Chart) near(y scale) scale {
	var values, ends []float64
	for _, s := range c.Series {
		for i := range s.X {
			if drawn := c.drawn(s.X[i], s.Y[i]); drawn && s.Shape != Line {
				values = append(values, s.Y[i])
			} else if drawn && i == len(s.X)-1 {
				ends = append(ends, s.Y[i])
			}
		}
	}
	if !c.Y.Near || c.Y.Log || len(values) < fewest {
		return y
	}
	slices.Sort(values)
	low, high := values[len(values)/10], values[(len(values)-1)*9/10]
	reach := 5 * (high - low)
	if reach == 0 {
		reach = max(math.Abs(high), 1)
	}
	within := slices.DeleteFunc(values, func(v float64) bool { return v < low-reach || v > high+reach })
	if len(within) == len(values) {
		return y
	}
	within = append(within, ends...)
	return scale{slices.Min(within), slices.Max(within), false}.widened()
}

// fewest points have outliers.
const fewest = 8

// beyond counts the points above or below a scale, and says how far the farthest is.
func (c Chart) beyond(y scale, above bool) (n int, farthest float64) {
	for _, s := range c.Series {
		for i := range s.X {
			out := above && s.Y[i] > y.high || !above && s.Y[i] < y.low
			if s.Shape == Line || !c.drawn(s.X[i], s.Y[i]) || !out {
				continue
			}
			if n++; n == 1 || above == (s.Y[i] > farthest) {
				farthest = s.Y[i]
			}
		}
	}
	return n, farthest
}

// widened is a scale that is not empty.
func (s scale) widened() scale {
	switch {
	case s.low > s.high:
		return scale{0, 1, false}
	case s.low == s.high && s.log:
		s.low, s.high = s.low/2, s.high*2
	case s.low == s.high:
		room := max(math.Abs(s.low)/10, 0.5)
		s.low, s.high = s.low-room, s.high+room
	}
	return s
}

func short(v float64) string {
	if v != 0 && math.Abs(v) < 1e-12 {
		v = 0
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
