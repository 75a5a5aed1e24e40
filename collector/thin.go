package collector

import (
	"cmp"
	"maps"
	"slices"
)

// Thinner condenses a curve of any length into a bounded number of stretches. A
// stretch spans 2^k places, k the least number that makes them few enough, and
// begins at a multiple of that; stretches without points do not exist. So a curve
// that grows moves no stretch until all double their width.
//
// It thins curves as they are read, for models and for eyes; Thin chooses the points
// of a curve that are kept, by the same stretches.
type Thinner struct {
	limit     int
	width     uint // a stretch spans 2^width places
	stretches map[int64]*Stretch
}

// Stretch condenses the points of neighbouring places.
type Stretch struct {
	// From and To are the least and the greatest place.
	From, To int64
	// First and Last are by step, then by place in the source. Least and Greatest
	// are as Less and Greater order values; of equal ones it is the first.
	First, Last, Least, Greatest Point
	// Points is their number, at least 1.
	Points int64
}

// NewThinner returns a thinner to at most limit stretches, limit at least 2.
func NewThinner(limit int) *Thinner {
	return &Thinner{limit: limit, stretches: map[int64]*Stretch{}}
}

// Add takes in a point whose Step is resolved, at any place, in any order.
func (t *Thinner) Add(place int64, p Point) {
	one := Stretch{place, place, p, p, p, p, 1}
	at := place >> t.width
	if s := t.stretches[at]; s != nil {
		s.join(&one)
		return
	}
	t.stretches[at] = &one
	t.widen()
}

// Len is the number of stretches.
func (t *Thinner) Len() int { return len(t.stretches) }

// Stretches are those so far, in order of place. More points may follow.
func (t *Thinner) Stretches() []Stretch {
	all := make([]Stretch, 0, len(t.stretches))
	for _, at := range slices.Sorted(maps.Keys(t.stretches)) {
		all = append(all, *t.stretches[at])
	}
	return all
}

// widen doubles the width until there are few enough stretches. At a width of 2^63
// there are two.
func (t *Thinner) widen() {
	for len(t.stretches) > t.limit && t.width < 63 {
		t.width++
		wider := make(map[int64]*Stretch, len(t.stretches))
		for at, s := range t.stretches {
			if other := wider[at>>1]; other != nil {
				s.join(other)
			}
			wider[at>>1] = s
		}
		t.stretches = wider
	}
}

// join adds the points of other.
func (s *Stretch) join(other *Stretch) {
	s.From, s.To = min(s.From, other.From), max(s.To, other.To)
	if comparePoints(&other.First, &s.First) < 0 {
		s.First = other.First
	}
	if comparePoints(&other.Last, &s.Last) > 0 {
		s.Last = other.Last
	}
	if improves(Less, &other.Least, &s.Least) {
		s.Least = other.Least
	}
	if improves(Greater, &other.Greatest, &s.Greatest) {
		s.Greatest = other.Greatest
	}
	s.Points += other.Points
}

// improves breaks ties by the order of points, so that the order in which they
// come does not show.
func improves(better func(a, b *Point) bool, a, b *Point) bool {
	return better(a, b) || !better(b, a) && comparePoints(a, b) < 0
}

// Thin returns the points of one series of one source, in order of Seq, that show
// its form and decide its result: of at most limit stretches the first, the last, the
// least and the greatest, and three more on which the steps and times of other parts
// of the curve may depend. A point without a step gets the one that was stated last
// before it. What was thinned may be thinned again, together with later points: so a
// curve may be cut anywhere, thinned part by part, and keeps its extremes.
func Thin(points []Point, limit int) []Point {
	if len(points) == 0 {
		return nil
	}
	t := NewThinner(limit)
	// before is the last point before any step is stated: its step was stated in an
	// earlier part, and may be the highest. Without steps, latest has the latest time.
	var before, latest *Point
	var p Point
	step := NoStep
	for i := range points {
		p = points[i]
		if p.Step == NoStep && step == NoStep {
			before = &points[i]
			if latest == nil || !p.Time.Before(latest.Time) {
				latest = before
			}
		} else if p.Step != NoStep {
			step = p.Step
		}
		p.Step = step
		t.Add(p.Seq, p)
	}
	kept := []Point{p} // the last one, from which later parts take their step
	for _, s := range t.Stretches() {
		kept = append(kept, s.First, s.Last, s.Least, s.Greatest)
	}
	if before != nil {
		kept = append(kept, *before, *latest)
	}
	slices.SortFunc(kept, func(a, b Point) int { return cmp.Compare(a.Seq, b.Seq) })
	return slices.CompactFunc(kept, func(a, b Point) bool { return a.Seq == b.Seq })
}
