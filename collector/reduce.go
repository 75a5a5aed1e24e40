package collector

import (
	"cmp"
	"math"
	"slices"
	"strconv"
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
	o := Observation{Metric: metric, Min: missing(), Max: missing(), Latest: missing()}
	newest := slices.DeleteFunc(slices.Clone(series), func(s Series) bool {
		return s.Metric != metric || len(s.Points) == 0
	})
	slices.SortStableFunc(newest, func(a, b Series) int {
		return cmp.Or(b.Attempt.Started.Compare(a.Attempt.Started), cmp.Compare(b.Attempt.ID, a.Attempt.ID))
	})
	limit := int64(math.MaxInt64)
	for i := 0; i < len(newest); {
		var points []stepped
		attempt := newest[i].Attempt.ID
		for ; i < len(newest) && newest[i].Attempt.ID == attempt; i++ {
			points = append(points, withSteps(newest[i].Points)...)
		}
		kept := points[:0]
		for _, p := range points {
			if limit == math.MaxInt64 || p.step < limit && p.step != NoStep {
				kept = append(kept, p)
			}
		}
		if len(kept) == 0 {
			continue
		}
		o.add(kept)
		limit = min(limit, slices.MinFunc(kept, stepped.compare).step)
	}
	return o
}

// add takes in the points of one attempt. The newest attempt comes first.
func (o *Observation) add(points []stepped) {
	if o.Points == 0 {
		o.Latest = measure(slices.MaxFunc(points, stepped.compare).Point)
	}
	o.Points += len(points)
	for _, p := range points {
		m := measure(p.Point)
		if !isNumber(m) {
			continue
		}
		if o.Min.Text == Unavailable || better(m, o.Min, func(a, b float64) bool { return a < b }) {
			o.Min = m
		}
		if o.Max.Text == Unavailable || better(m, o.Max, func(a, b float64) bool { return a > b }) {
			o.Max = m
		}
	}
}

// better compares by kind first: any finite value beats any infinity, and any
// infinity beats NaN.
func better(a, b Measure, ahead func(a, b float64) bool) bool {
	ka, kb := kind(a.Value), kind(b.Value)
	if ka != kb {
		return ka < kb
	}
	return ahead(a.Value, b.Value)
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

// withSteps gives points that state no step the last step stated before them
// in their source.
func withSteps(points []Point) []stepped {
	out := make([]stepped, len(points))
	for i, p := range points {
		out[i] = stepped{p, p.Step}
	}
	slices.SortFunc(out, func(a, b stepped) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq))
	})
	for i := 1; i < len(out); i++ {
		if out[i].step == NoStep && out[i].Source == out[i-1].Source {
			out[i].step = out[i-1].step
		}
	}
	return out
}

func measure(p Point) Measure {
	if p.Text != "" {
		return Measure{p.Value, p.Text}
	}
	return Measure{p.Value, strconv.FormatFloat(p.Value, 'g', -1, 64)}
}

// isNumber tells a NaN that was reported from a text that is no number.
func isNumber(m Measure) bool {
	return !math.IsNaN(m.Value) || strings.EqualFold(strings.TrimLeft(m.Text, "+-"), "nan")
}

func missing() Measure { return Measure{math.NaN(), Unavailable} }
