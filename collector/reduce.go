package collector

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Unavailable is what Katib's API shows in place of a value that was never
// reported.
const Unavailable = "unavailable"

// Strategy says which of a metric's values stands for the trial.
type Strategy string

// The strategies of Katib's metricStrategies.
const (
	StrategyMin    Strategy = "min"
	StrategyMax    Strategy = "max"
	StrategyLatest Strategy = "latest"
)

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
	// metric was never seen, and that all three measures are unavailable.
	Points int
}

// By returns the measure that a strategy names; ok is false when the measure
// is unavailable or the strategy is unknown.
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

// Reduce returns the measure of one metric by one strategy. It is Observe and
// By in one.
func Reduce(series []Series, metric string, s Strategy) (m Measure, ok bool) {
	return Observe(series, metric).By(s)
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
	newest := slices.DeleteFunc(slices.Clone(series), func(s Series) bool {
		return s.Metric != metric || len(s.Points) == 0
	})
	slices.SortStableFunc(newest, func(a, b Series) int {
		return cmp.Or(b.Attempt.Started.Compare(a.Attempt.Started), cmp.Compare(b.Attempt.ID, a.Attempt.ID))
	})
	c := NewCondenser(metric)
	for _, s := range newest {
		points := slices.Clone(s.Points)
		slices.SortFunc(points, func(a, b Point) int {
			return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq))
		})
		c.read = false // a series does not hand its last step to the next one
		for _, p := range points {
			c.Add(s.Attempt, p)
		}
	}
	return c.Observation()
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
	least, greatest Point
	latest          stepped

	// attempt is the one that is being read, begun with the first point of all.
	// newest: it is the one that has the latest point.
	attempt string
	begun   bool
	newest  bool
	// limit is the least step that counted in newer attempts, and lowest that in
	// this one and newer ones. math.MaxInt64: everything counts.
	limit, lowest int64
	// source is the one that is being read, and step the last one stated in it.
	// read is false before its first point.
	source string
	step   int64
	read   bool
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
		c.attempt, c.begun, c.newest = attempt.ID, true, c.points == 0
		c.limit, c.read = c.lowest, false
	}
	step := p.Step
	if step == NoStep && c.read && p.Source == c.source {
		step = c.step
	}
	c.source, c.step, c.read = p.Source, step, true
	if c.limit != math.MaxInt64 && (step >= c.limit || step == NoStep) {
		return // a newer attempt has been there
	}
	c.lowest = min(c.lowest, step)
	if at := (stepped{p, step}); c.newest && (c.points == 0 || at.compare(c.latest) > 0) {
		c.latest = at
	}
	c.points++
	if !isNumber(p) {
		return
	}
	if !c.numbers || better(p.Value, c.least.Value, func(a, b float64) bool { return a < b }) {
		c.least = p
	}
	if !c.numbers || better(p.Value, c.greatest.Value, func(a, b float64) bool { return a > b }) {
		c.greatest = p
	}
	c.numbers = true
}

// Observation condenses the points so far. More may follow.
func (c *Condenser) Observation() Observation {
	o := Observation{Metric: c.metric, Min: missing(), Max: missing(), Latest: missing(), Points: c.points}
	if c.points > 0 {
		o.Latest = measure(c.latest.Point)
	}
	if c.numbers {
		o.Min, o.Max = measure(c.least), measure(c.greatest)
	}
	return o
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

// stepped is a point with the step that it belongs to.
type stepped struct {
	Point
	step int64
}

func (a stepped) compare(b stepped) int {
	return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.Seq, b.Seq),
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
