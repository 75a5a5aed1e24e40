package collector

import (
	"cmp"
	"math"
	"strings"
)

// Unavailable is what Katib's API shows in place of a value that was never
// reported.
const Unavailable = "unavailable"

// Measure is one value of an observation.
type Measure struct {
	// Value is the number; NaN when Text is not a number.
	Value float64
	// Text is the value as it was written.
	Text string
}

// Finite reports whether the measure can be compared with others: NaN and the
// infinities are never best and never reach a goal.
func (m Measure) Finite() bool { return !math.IsNaN(m.Value) && !math.IsInf(m.Value, 0) }

// Observation condenses the points of one metric of one trial. A measure that
// is unavailable has the Text Unavailable and the Value NaN.
type Observation struct {
	Metric           string
	Min, Max, Latest Measure
	// Points is the number of points that were condensed. Zero means that the
	// metric was never seen, and that all measures are unavailable.
	Points int
	// Chosen is the measure by the strategy that was asked for; unavailable when
	// none was.
	Chosen Measure
}

// By returns the measure that a strategy names; ok is false when the measure
// is unavailable, or the strategy is neither min, max nor latest.
func (o Observation) By(s Strategy) (m Measure, ok bool) {
	switch s {
	case StrategyMin:
		m = o.Min
	case StrategyMax:
		m = o.Max
	case StrategyLatest:
		m = o.Latest
	default:
		m = missing()
	}
	return m, m.Text != Unavailable
}

// Observe condenses the points of one metric.
//
// The newest attempt with points of the metric counts. Of earlier attempts only
// the points below the first step of every newer one count, so that training
// that resumed from a checkpoint keeps its past and training that began anew
// does not. An attempt without steps replaces all earlier ones.
//
// Min and Max are taken over the finite values; where there is none, over the
// infinities; where there is none of these either, they are NaN. Values that
// are not numbers have no part in them. Latest is the last point by step, then
// Seq, of the newest attempt, whatever its value; a point without a step
// belongs to the step stated last before it in its source.
func Observe(series []Series, metric string) Observation {
	return Reduce(series, Ask{Metric: metric})[0]
}

// Condenser condenses the points of one metric of one trial one after the other,
// in memory that does not grow with their number. It observes the rules of
// Observe, which is made of it.
type Condenser struct {
	metric string
	// points counts what counts. latest is set by the first of them, least and
	// greatest by the first number, which numbers tells of.
	points          int
	numbers         bool
	least, greatest placed
	latest          placed
	tail            *tail // nil unless the mean of the last points is wanted

	// attempt is the one that is being read, begun with the first point of all; age
	// counts those before it. newest: it is the one that has the latest point.
	attempt string
	age     int
	begun   bool
	newest  bool
	// limit is the least step that counted in newer attempts, and lowest that in
	// this one and newer ones. math.MaxInt64: everything counts.
	limit, lowest int64
	steps         carrier
}

// NewCondenser returns a condenser that has seen no point of metric.
func NewCondenser(metric string) *Condenser {
	return &Condenser{metric: metric, limit: math.MaxInt64, lowest: math.MaxInt64}
}

// Add takes in a point of the metric. Points come attempt by attempt, the newest
// one first (of those started at once, the one with the greatest ID), within an
// attempt in order of Source, and within a source in order of Seq. In another
// order the result is undefined.
func (c *Condenser) Add(attempt Attempt, p Point) {
	if !c.begun || attempt.ID != c.attempt {
		if c.begun {
			c.age++
		}
		c.attempt, c.begun, c.newest = attempt.ID, true, c.points == 0
		c.limit, c.steps = c.lowest, carrier{}
	}
	step := c.steps.of(p)
	if c.limit != math.MaxInt64 && (step >= c.limit || step == NoStep) {
		return // a newer attempt has been there
	}
	c.lowest = min(c.lowest, step)
	at := placed{p, step, c.age, c.attempt}
	if c.newest && (c.points == 0 || at.compare(&c.latest) > 0) {
		c.latest = at
	}
	if c.tail != nil {
		c.tail.add(&at)
	}
	c.points++
	if !isNumber(p) {
		return
	}
	if !c.numbers || better(p.Value, c.least.Value, func(a, b float64) bool { return a < b }) {
		c.least = at
	}
	if !c.numbers || better(p.Value, c.greatest.Value, func(a, b float64) bool { return a > b }) {
		c.greatest = at
	}
	c.numbers = true
}

// Observation condenses the points so far. More may follow.
func (c *Condenser) Observation() Observation {
	o := Observation{Metric: c.metric, Min: missing(), Max: missing(), Latest: missing(), Chosen: missing(), Points: c.points}
	if c.points > 0 {
		o.Latest = measure(c.latest.Point)
	}
	if c.numbers {
		o.Min, o.Max = measure(c.least.Point), measure(c.greatest.Point)
	}
	return o
}

// LatestStep is the step of the latest point so far; NoStep where it has none and
// where there is no point.
func (c *Condenser) LatestStep() int64 {
	if c.points == 0 {
		return NoStep
	}
	return c.latest.step
}

// carrier gives points without a step that of the last one before them in their
// source. Points come in order of Source, then Seq.
type carrier struct {
	source string
	step   int64
	read   bool // false before the first point
}

func (c *carrier) of(p Point) int64 {
	step := p.Step
	if step == NoStep && c.read && p.Source == c.source {
		step = c.step
	}
	c.source, c.step, c.read = p.Source, step, true
	return step
}

// better compares by kind first: any finite value beats any infinity, and any
// infinity beats NaN.
func better(a, b float64, ahead func(a, b float64) bool) bool {
	ka, kb := kind(a), kind(b)
	if ka != kb {
		return ka < kb
	}
	return ahead(a, b)
}

func kind(v float64) int {
	switch {
	case math.IsNaN(v):
		return 2
	case math.IsInf(v, 0):
		return 1
	default:
		return 0
	}
}

// placed is a point with the step that it belongs to and its attempt: how many
// newer ones there are, and its ID.
type placed struct {
	Point
	step    int64
	age     int
	attempt string
}

// compare orders by attempt, then as Latest does.
func (a *placed) compare(b *placed) int {
	return cmp.Or(cmp.Compare(b.age, a.age), cmp.Compare(a.step, b.step), cmp.Compare(a.Seq, b.Seq),
		a.Time.Compare(b.Time), cmp.Compare(a.Source, b.Source))
}

func measure(p Point) Measure {
	return Measure{p.Value, p.Written()}
}

// isNumber tells a NaN that was reported from a text that is no number.
func isNumber(p Point) bool {
	return !math.IsNaN(p.Value) || p.Text == "" || strings.EqualFold(strings.TrimLeft(p.Text, "+-"), "nan")
}

func missing() Measure { return Measure{math.NaN(), Unavailable} }
