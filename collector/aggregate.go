package collector

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
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

// MarshalText implements encoding.TextMarshaler, since JSON has no NaN.
func (m Measure) MarshalText() ([]byte, error) { return []byte(m.Text), nil }

// UnmarshalText implements encoding.TextUnmarshaler. What is no number is NaN.
func (m *Measure) UnmarshalText(text []byte) error {
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		value = math.NaN()
	}
	*m = Measure{value, string(text)}
	return nil
}

// Observation sums up the points of one metric of one trial. A measure that is
// unavailable has the Text Unavailable and the Value NaN.
type Observation struct {
	Metric           string
	Min, Max, Latest Measure
	// Points is the number of points that count. Zero means that the metric was
	// never seen, and that all measures are unavailable.
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

// Aggregator sums up the points of one metric of one trial as they are read, in
// memory that does not grow with their number. The zero value has seen no point.
//
// The newest attempt with points of the metric counts. Of earlier attempts only
// the points below the first step of every newer one count, so that training
// that resumed from a checkpoint keeps its past and training that began anew
// does not. An attempt without steps replaces all earlier ones. Points of an ItemSource
// count only if no attempt has others.
//
// Min and Max are taken over the finite values; where there is none, over the
// infinities; where there is none of these either, they are NaN. Values that are
// not numbers have no part in them. Latest is the last point of the newest
// attempt, whatever its value: by step, then by place in the source. A point
// without a step belongs to the step stated last before it in its source; points
// that belong to no step are ordered by time.
type Aggregator struct {
	points                  int
	numbers                 bool // least and greatest are set
	least, greatest, latest aggregated
	tail                    tail // of the last points, where they are wanted

	lineage lineage
}

// Add takes in a point of the metric. Points come attempt by attempt, the newest
// one first (of those started at once, the one with the greatest ID), within an
// attempt in order of Source, and within a source in order of Seq. In another
// order the result is undefined.
func (g *Aggregator) Add(attempt Attempt, p Point) {
	ok, anew := g.lineage.takes(&p)
	if anew {
		*g = Aggregator{tail: tail{size: g.tail.size}, lineage: g.lineage}
	}
	if !ok || !g.lineage.counts(attempt, &p) {
		return
	}
	at := aggregated{p, g.lineage.age, attempt.ID}
	if g.points == 0 || at.compare(&g.latest) > 0 {
		g.latest = at
	}
	g.tail.add(&at)
	g.points++
	if rank(&p) == rankText {
		return
	}
	if !g.numbers || Less(&p, &g.least.Point) {
		g.least = at
	}
	if !g.numbers || Greater(&p, &g.greatest.Point) {
		g.greatest = at
	}
	g.numbers = true
}

// lineage tells which points of a metric count when a program was started several
// times: see Aggregator.
type lineage struct {
	attempt string
	age     int // attempts that are newer
	begun   bool
	// limit is the least step that counted in newer attempts, and lowest that in
	// this one and newer ones. In the newest, everything counts.
	limit, lowest int64
	stepped       bool // a point that counted has a step
	plain         bool // a point came from another source than an ItemSource
	steps         stepCarrier
}

// counts resolves the step of a point and says whether it counts. Points come as
// Aggregator.Add takes them.
func (l *lineage) counts(attempt Attempt, p *Point) bool {
	if !l.begun {
		l.attempt, l.lowest, l.begun = attempt.ID, math.MaxInt64, true
	}
	if attempt.ID != l.attempt {
		if !l.stepped {
			l.lowest = NoStep // without steps it replaces all
		}
		l.age++
		l.attempt, l.limit, l.steps = attempt.ID, l.lowest, stepCarrier{}
	}
	p.Step = l.steps.of(p)
	if l.age > 0 && (p.Step >= l.limit || p.Step == NoStep) {
		return false // a newer attempt has been there
	}
	if p.Step != NoStep {
		l.lowest, l.stepped = min(l.lowest, p.Step), true
	}
	return true
}

// takes reports whether a point may count (ok), and whether the points before it no longer
// do (anew): points of an ItemSource count only if no attempt has others.
func (l *lineage) takes(p *Point) (ok, anew bool) {
	switch item := strings.HasSuffix(p.Source, ItemSource); {
	case item:
		return !l.plain, false
	case l.plain:
		return true, false
	}
	anew = l.begun
	*l = lineage{plain: true}
	return true, anew
}

// Observation sums up the points so far. More may follow.
func (g *Aggregator) Observation(metric string) Observation {
	o := Observation{Metric: metric, Min: missing(), Max: missing(), Latest: missing(), Chosen: missing(), Points: g.points}
	if g.points > 0 {
		o.Latest = measure(g.latest.Point)
	}
	if g.numbers {
		o.Min, o.Max = measure(g.least.Point), measure(g.greatest.Point)
	}
	return o
}

// LatestStep is the step of the latest point so far; NoStep where it has none and
// where there is no point.
func (g *Aggregator) LatestStep() int64 {
	if g.points == 0 {
		return NoStep
	}
	return g.latest.Step
}

// best returns the least or greatest point; ok is false when it is not finite.
func (g *Aggregator) best(maximize bool) (best aggregated, ok bool) {
	best = g.least
	if maximize {
		best = g.greatest
	}
	return best, g.numbers && rank(&best.Point) == rankFinite
}

// aggregated is a point with its resolved step and its attempt: how many newer
// ones there are, and its ID.
type aggregated struct {
	Point
	age     int
	attempt string
}

// compare orders by attempt, then as Latest does.
func (a *aggregated) compare(b *aggregated) int {
	byTime := 0
	if a.Step == NoStep && b.Step == NoStep {
		byTime = a.Time.Compare(b.Time)
	}
	return cmp.Or(cmp.Compare(b.age, a.age), byTime, comparePoints(&a.Point, &b.Point))
}

func measure(p Point) Measure { return Measure{p.Value, p.Written()} }

func missing() Measure { return Measure{math.NaN(), Unavailable} }

// tail keeps at least the last size points.
type tail struct {
	size   int
	points []aggregated
}

func (t *tail) add(p *aggregated) {
	if t.size == 0 {
		return
	}
	if len(t.points) == 2*t.size {
		t.sort()
		t.points = slices.Delete(t.points, 0, t.size)
	}
	t.points = append(t.points, *p)
}

func (t *tail) sort() {
	slices.SortFunc(t.points, func(a, b aggregated) int { return a.compare(&b) })
}

// mean is that of the finite values among the last k points, k at most size. It
// adds in the order of the points, so that equal points give equal bits.
func (t *tail) mean(k int) (mean float64, ok bool) {
	t.sort()
	var values []float64
	for _, p := range t.points[max(len(t.points)-k, 0):] {
		if rank(&p.Point) == rankFinite {
			values = append(values, p.Value)
		}
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if !math.IsInf(sum, 0) {
		return sum / float64(len(values)), len(values) > 0
	}
	for _, v := range values { // in parts, so that it does not overflow
		mean += v / float64(len(values))
	}
	return mean, true
}
