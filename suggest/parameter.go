package suggest

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind says what values a parameter takes. Its values are Katib's.
type Kind string

// The kinds.
const (
	// Double is a number between Min and Max, on a grid when there is a step.
	Double Kind = "double"
	// Int is a whole number between Min and Max; its step defaults to 1.
	Int Kind = "int"
	// Discrete is a number from a list.
	Discrete Kind = "discrete"
	// Categorical is a word from a list, without order.
	Categorical Kind = "categorical"
)

// Distribution is the prior of a double or int: where random search looks, and
// the scale on which model-based search measures distance. Its values are
// Katib's. A discrete or categorical parameter ignores it.
type Distribution string

// The distributions. A normal one has its mean in the middle between min and
// max and a standard deviation of a sixth of the range, cut off at min and max;
// for logNormal this holds for the logarithm.
const (
	Uniform    Distribution = "uniform"
	LogUniform Distribution = "logUniform"
	Normal     Distribution = "normal"
	LogNormal  Distribution = "logNormal"
)

// Parameter is one dimension of a Space. It is valid by construction and never
// changes.
type Parameter struct {
	name         string
	kind         Kind
	distribution Distribution
	min, max     float64
	grid         *grid     // of a stepped double or an int
	choices      []string  // of a discrete (ascending) or categorical (as written)
	numbers      []float64 // of a discrete, beside choices
	count        int64     // how many values; 0 when continuous
	scale        scale
	prior        *belief    // nil: none
	when         *condition // nil: always active
}

// Name of the parameter.
func (p Parameter) Name() string { return p.name }

// Kind of the parameter.
func (p Parameter) Kind() Kind { return p.kind }

// Distribution of the parameter; Uniform when the user gave none.
func (p Parameter) Distribution() Distribution { return p.distribution }

// Min is the smallest value of a double, int or discrete; 0 for a categorical.
func (p Parameter) Min() float64 { return p.min }

// Max is the upper bound of a double, int or discrete; 0 for a categorical.
// The largest value lies below it when (Max-Min) is no multiple of Step.
func (p Parameter) Max() float64 { return p.max }

// Step is the distance between the values of an int or of a double on a grid;
// 0 when there is none.
func (p Parameter) Step() float64 {
	if p.grid == nil {
		return 0
	}
	return p.grid.step
}

// Choices are the values of a discrete, ascending, or of a categorical, as the
// user ordered them; nil for a double or int.
func (p Parameter) Choices() []string { return slices.Clone(p.choices) }

// Allowed says what values the parameter has, in words that follow "must be".
// Long lists are cut.
func (p Parameter) Allowed() string {
	if p.choices != nil {
		const most = 60
		words := strings.Join(p.choices, ", ")
		if runes := []rune(words); len(runes) > most {
			words = string(runes[:most]) + "…"
		}
		return "one of " + words
	}
	words := "from " + formatFloat(p.min) + " to " + formatFloat(p.max)
	if p.grid != nil {
		words += " in steps of " + formatFloat(p.grid.step)
	}
	return words
}

// Count is how many values the parameter has; finite is false when it is a
// double without step (and Min below Max).
func (p Parameter) Count() (n int64, finite bool) { return p.count, p.count > 0 }

// At is the value with the index i, which must lie in [0, Count).
func (p Parameter) At(i int64) Value {
	if i < 0 || i >= p.count {
		panic("suggest: parameter " + strconv.Quote(p.name) + " has no value with the index " + strconv.FormatInt(i, 10))
	}
	v := Value{index: i, in: true}
	switch {
	case p.choices != nil:
		v.text = p.choices[i]
		if p.numbers != nil {
			v.number = p.numbers[i]
		}
	case p.grid != nil:
		v.number = p.grid.at(i)
		v.text = p.grid.text(v.number)
	default:
		v.text, v.number = formatFloat(p.min), p.min
	}
	return v
}

// Parse finds the value that text stands for. It understands other spellings
// of the same number and the rounding noise of other programs. When the
// parameter does not allow the value, ok is false and the value keeps the text
// (and its number, if it is one).
func (p Parameter) Parse(text string) (v Value, ok bool) {
	if i := slices.Index(p.choices, text); i >= 0 {
		return p.At(int64(i)), true
	}
	outside := Value{text: text, index: -1}
	if p.kind == Categorical {
		return outside, false
	}
	n, err := parseNumber(text)
	if err != nil {
		return outside, false
	}
	x := n.value
	outside.number = x
	var i int64
	switch {
	case p.kind == Discrete:
		i = int64(slices.Index(p.numbers, x))
		ok = i >= 0
	case p.grid != nil:
		i, ok = p.grid.index(x, p.count)
	case p.count == 1:
		ok = x == p.min
	default:
		if x < p.min || x > p.max {
			return outside, false
		}
		return p.continuous(x), true
	}
	if !ok {
		return outside, false
	}
	return p.At(i), true
}

// continuous is the value x, within the bounds, of a double without step.
func (p Parameter) continuous(x float64) Value {
	x = math.Min(math.Max(x, p.min), p.max) + 0 // -0+0 is 0
	return Value{text: formatFloat(x), number: x, index: -1, in: true}
}
