package report

import (
	"cmp"
	"slices"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// DefaultRate is how many points a second of a metric are kept in the long
	// run, unless the user says otherwise.
	DefaultRate = 1000
	// burstSeconds is how much of the rate a metric may use ahead of its time: a
	// program of some minutes, or one that is read late, is kept whole.
	burstSeconds = 100
	// keptOfStretch is how many points a stretch of a thinned curve keeps: the
	// first and the last by step, the least and the greatest.
	keptOfStretch = 4
	// maxStretches bounds what one thinned series takes of a batch.
	maxStretches = MaxBatch / 8
)

// window thins the points of one series of one source between two batches.
//
// A batch covers its sources without a gap, and is stored as a whole or not at
// all. So it does not matter where windows begin and end, and a collector that
// was killed may cut them otherwise: each raw point that is acknowledged was
// thinned in one window that was stored, and the series keeps its extremes.
type window struct {
	metric  *metricState
	thinner *collector.Thinner
	raw     int64
	// step is the one stated last; a point without one is kept with that step.
	step   int64
	stated bool
	// last is the last point, from which later windows take their step. before is
	// the last point before any step was stated: its step was stated in an earlier
	// window, and may be the highest. Without steps, latest has the latest time.
	last, before, latest *collector.Point
}

// newWindow returns a window that keeps about budget points.
func newWindow(m *metricState, budget int) *window {
	limit := min(max(budget/keptOfStretch, 2), maxStretches)
	return &window{metric: m, thinner: collector.NewThinner(limit)}
}

func (w *window) add(p collector.Point) {
	if p.Step != collector.NoStep {
		w.step, w.stated = p.Step, true
	}
	if w.stated {
		p.Step = w.step
	} else {
		w.before = &p
		if w.latest == nil || !p.Time.Before(w.latest.Time) {
			w.latest = &p
		}
	}
	w.last = &p
	w.thinner.Add(w.raw, p)
	w.raw++
}

// held is the most points that the window becomes, but for a few.
func (w *window) held() int { return keptOfStretch * w.thinner.Len() }

// points are what the window keeps, in order of Seq.
func (w *window) points() []collector.Point {
	var points []collector.Point
	for _, s := range w.thinner.Stretches() {
		points = append(points, s.First, s.Last, s.Least, s.Greatest)
	}
	for _, p := range []*collector.Point{w.last, w.before, w.latest} {
		if p != nil {
			points = append(points, *p)
		}
	}
	sortBySeq(points)
	return slices.CompactFunc(points, func(a, b collector.Point) bool { return a.Seq == b.Seq })
}

func sortBySeq(points []collector.Point) {
	slices.SortFunc(points, func(a, b collector.Point) int { return cmp.Compare(a.Seq, b.Seq) })
}
