package collector

import (
	"cmp"
	"math"
	"strings"
)

// Less reports whether a is a better minimum than b. Finite numbers come before
// infinities, infinities before NaN, and NaN before text that is not a number.
func Less(a, b *Point) bool {
	ra, rb := rank(a), rank(b)
	return ra < rb || ra == rb && a.Value < b.Value
}

// Greater reports whether a is a better maximum than b, with the same order of
// kinds as Less.
func Greater(a, b *Point) bool {
	ra, rb := rank(a), rank(b)
	return ra < rb || ra == rb && a.Value > b.Value
}

const (
	rankFinite = iota
	rankInfinite
	rankNaN
	rankText
)

func rank(p *Point) int {
	switch {
	case !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0):
		return rankFinite
	case !math.IsNaN(p.Value):
		return rankInfinite
	case p.Text == "" || strings.EqualFold(strings.TrimLeft(p.Text, "+-"), "nan"):
		return rankNaN
	}
	return rankText
}

// CompareAttempts orders attempts by start, then ID.
func CompareAttempts(a, b Attempt) int {
	return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
}

// ItemSource ends the names of sources whose points were written as `name: value`. Such
// points do not count if any attempt has other points of the metric.
const ItemSource = ":items"

// comparePoints orders the points of a metric in one attempt: by step, then by
// place in the source. Their Step is resolved: see stepCarrier.
func comparePoints(a, b *Point) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Seq, b.Seq), a.Time.Compare(b.Time), cmp.Compare(a.Source, b.Source))
}

// stepCarrier resolves the steps of the points of one metric in one attempt: a
// point without a step belongs to the step stated last before it in its source.
// Points of a source come in order of Seq; sources may alternate.
type stepCarrier struct {
	steps map[string]int64 // by source, at most maxCarried
}

const maxCarried = 64

func (c *stepCarrier) of(p *Point) int64 {
	step, known := c.steps[p.Source]
	if p.Step != NoStep {
		if c.steps == nil || !known && len(c.steps) == maxCarried {
			c.steps = map[string]int64{}
		}
		step, known = p.Step, true
		c.steps[p.Source] = step
	}
	if !known {
		return NoStep
	}
	return step
}
