package report

import (
	"cmp"
	"slices"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// DefaultRate is how many points a second of a metric are kept in the long
	// run, unless it is said otherwise.
	DefaultRate = 1000
	// burstSeconds is how much of the rate a metric may use ahead of its time: a
	// program of some minutes, or one that is read late, is kept whole.
	burstSeconds = 100
	// What the condensed form of any stretch of a series holds at most: its
	// first, least, greatest and last points, those of the lowest and the highest
	// step, and the last one that states a step.
	maxKept = 7
	// usuallyKept is what most stretches hold.
	usuallyKept = 4
)

// ranked is a point with the step that it belongs to: its own, or the one stated
// last before it in its series (as in collector.Condenser).
type ranked struct {
	collector.Point
	step int64
	// anchor is the point that states the step, when the point itself does not.
	// Whoever keeps the point keeps the anchor, or the point changes its step.
	anchor *collector.Point
}

// stretch condenses points that follow each other in one series.
type stretch struct {
	points                  int
	first, last             ranked
	least, greatest         ranked
	lowest, highest, stated ranked // stated: the last one that has a step of its own, if any has
}

func stretchOf(p ranked) stretch {
	return stretch{points: 1, first: p, last: p, least: p, greatest: p, lowest: p, highest: p, stated: p}
}

// join takes in the stretch that follows. Of equal values the earlier stands, of
// equal steps the later, as where curves are condensed.
func (s *stretch) join(next stretch) {
	s.points += next.points
	s.last = next.last
	if ahead(value(next.least), value(s.least), next.least.Value < s.least.Value) {
		s.least = next.least
	}
	if ahead(value(next.greatest), value(s.greatest), next.greatest.Value > s.greatest.Value) {
		s.greatest = next.greatest
	}
	if next.lowest.step < s.lowest.step {
		s.lowest = next.lowest
	}
	if next.highest.step >= s.highest.step {
		s.highest = next.highest
	}
	if next.stated.Step != collector.NoStep || s.stated.Step == collector.NoStep {
		s.stated = next.stated
	}
}

func value(p ranked) Value { return Value{p.Value, p.Text} }

// appendTo adds what the stretch keeps to points, in no order, perhaps twice.
func (s *stretch) appendTo(points []collector.Point) []collector.Point {
	for _, p := range [maxKept]*ranked{&s.first, &s.last, &s.least, &s.greatest, &s.lowest, &s.highest, &s.stated} {
		if p.anchor != nil {
			points = append(points, *p.anchor)
		}
		points = append(points, p.Point)
	}
	return points
}

// window holds the points of one series of one source between two batches: all
// of them, or when they are more than it was allowed, stretches of equal length,
// so that the curve keeps its form.
//
// A batch covers its sources without a gap, and is stored as a whole or not at
// all. So it does not matter where windows begin and end, and a collector that
// was killed may cut them otherwise: each raw point that is acknowledged was
// condensed in one window that was stored, and the series keeps its extremes.
type window struct {
	all       []collector.Point // while nothing is condensed
	stretches []stretch
	width     int // points in a stretch; 0: nothing is condensed
	limit     int // stretches
	raw       int64
	// The point that stated a step last, and once it is needed, a copy of it for
	// the points that state none.
	stated    collector.Point
	hasStated bool
	anchor    *collector.Point
	// The last point before any step was stated: its step was stated in an
	// earlier window, and may be the highest.
	carried    collector.Point
	hasCarried bool
}

func (w *window) reset() {
	clear(w.all) // of strings
	clear(w.stretches)
	*w = window{all: w.all[:0], stretches: w.stretches[:0]}
}

// held is the most points that the window becomes, but for anchors.
func (w *window) held() int {
	if w.width > 0 {
		return len(w.stretches) * (maxKept + 1)
	}
	return len(w.all)
}

func (w *window) add(p collector.Point) {
	w.raw++
	if w.width == 0 {
		w.all = append(w.all, p)
		return
	}
	w.condense(w.rank(p))
}

// condensed makes stretches of the window. budget is how many points it may
// hold from now on; it holds at least those of one stretch.
func (w *window) condensed(budget int) {
	w.width, w.limit = 1, max(budget/usuallyKept, 1)
	for _, p := range w.all {
		w.condense(w.rank(p))
	}
	clear(w.all)
	w.all = w.all[:0]
}

func (w *window) rank(p collector.Point) ranked {
	switch {
	case p.Step != collector.NoStep:
		w.stated, w.hasStated, w.anchor = p, true, nil
		return ranked{Point: p, step: p.Step}
	case !w.hasStated:
		w.carried, w.hasCarried = p, true
		return ranked{Point: p, step: collector.NoStep}
	case w.anchor == nil:
		anchor := w.stated
		w.anchor = &anchor
	}
	return ranked{Point: p, step: w.stated.Step, anchor: w.anchor}
}

func (w *window) condense(p ranked) {
	if n := len(w.stretches); n > 0 && w.stretches[n-1].points < w.width {
		w.stretches[n-1].join(stretchOf(p))
		return
	}
	for len(w.stretches) >= w.limit {
		w.widen()
		if n := len(w.stretches); w.stretches[n-1].points < w.width {
			w.stretches[n-1].join(stretchOf(p))
			return
		}
	}
	w.stretches = append(w.stretches, stretchOf(p))
}

// widen makes one stretch of two.
func (w *window) widen() {
	w.width *= 2
	n := 0
	for i := 0; i < len(w.stretches); i += 2 {
		joined := w.stretches[i]
		if i+1 < len(w.stretches) {
			joined.join(w.stretches[i+1])
		}
		w.stretches[n] = joined
		n++
	}
	w.stretches = w.stretches[:n]
}

// appendTo adds what the window keeps to points, in order of Seq.
func (w *window) appendTo(points []collector.Point) []collector.Point {
	if w.width == 0 {
		return append(points, w.all...)
	}
	begin := len(points)
	for i := range w.stretches {
		points = w.stretches[i].appendTo(points)
	}
	if w.hasCarried {
		points = append(points, w.carried)
	}
	slices.SortFunc(points[begin:], bySeq)
	kept := slices.CompactFunc(points[begin:], func(a, b collector.Point) bool { return a.Seq == b.Seq })
	return points[:begin+len(kept)]
}

func bySeq(a, b collector.Point) int { return cmp.Compare(a.Seq, b.Seq) }

func sortBySeq(points []collector.Point) { slices.SortFunc(points, bySeq) }
