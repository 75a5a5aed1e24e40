package collector

import (
	"maps"
	"slices"
)

// Thinner condenses a curve of any length into a bounded number of stretches. A
// stretch spans 2^k places, k the least number that makes them few enough, and
// begins at a multiple of that; stretches without points do not exist. So a curve
// that grows moves no stretch until all double their width.
//
// It is what thins curves everywhere: for models and for eyes (Sample), under the
// cap on the rate of a collector, and for what a store keeps of old trials.
type Thinner struct {
	limit     int
	width     uint // a stretch spans 2^width places
	stretches map[int64]*Stretch
	last      *Stretch // of the point before, which mostly is that of the next
	lastAt    int64
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
	if t.last != nil && at == t.lastAt {
		t.last.join(&one)
		return
	}
	if s := t.stretches[at]; s != nil {
		t.last, t.lastAt = s, at
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
	t.last = nil
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
