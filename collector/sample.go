package collector

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Bucket condenses the points of a stretch of a curve.
type Bucket struct {
	// First and Last are the least and greatest place of its points: their step,
	// or their Seq where SampledSeries.BySeq says so.
	First, Last int64
	// Min and Max are taken over the finite values; where there is none, over the
	// infinities; where there is none of these either, they are NaN.
	Min, Max float64
	// Value is that of the last point, in order of place, then Seq, and Time its
	// time.
	Value float64
	Time  time.Time
	// Points is their number, at least 1.
	Points int64
}

// SampledSeries is a curve with few points.
type SampledSeries struct {
	Attempt Attempt
	Metric  string
	// BySeq: no point states a step, and places are sequences.
	BySeq bool
	// Buckets are in order of place.
	Buckets []Bucket
}

// CheckBuckets refuses numbers of buckets that a Sampler does not take.
func CheckBuckets(n int) error {
	if n < MinBuckets || n > MaxBuckets {
		return fmt.Errorf("%d buckets were asked for: ask for %d to %d", n, MinBuckets, MaxBuckets)
	}
	return nil
}

// Sampler puts the points of one metric of one attempt into at most n buckets. A
// bucket spans 2^k places, k the least number that makes the buckets few enough,
// and begins at a multiple of that; buckets without points do not exist. So a
// curve that grows moves no bucket until all double their width, and memory is
// bounded by n.
//
// A point without a step belongs to the step stated last before it in its source.
// Where some points of a curve belong to a step and others to none, those others
// are one more bucket, the first, whose First and Last are NoStep.
type Sampler struct {
	steps    carrier
	stepped  ladder
	stepless ladder
}

// NewSampler returns a sampler of at most n buckets; n is one that CheckBuckets
// lets pass.
func NewSampler(n int) *Sampler {
	return &Sampler{stepped: ladder{limit: n}, stepless: ladder{limit: n}}
}

// Add takes in a point. Points come in order of Source, then Seq.
func (s *Sampler) Add(p Point) {
	if step := s.steps.of(p); step == NoStep {
		s.stepless.add(p.Seq, p)
	} else {
		s.stepped.add(step, p)
	}
}

// Buckets returns the buckets so far. More points may follow.
func (s *Sampler) Buckets() (buckets []Bucket, bySeq bool) {
	if len(s.stepped.buckets) == 0 {
		return s.stepless.sorted(), true
	}
	buckets = s.stepped.sorted()
	without := s.stepless.sorted()
	if len(without) == 0 {
		return buckets, false
	}
	first := without[0]
	for _, b := range without[1:] {
		first.merge(b)
	}
	first.First, first.Last = NoStep, NoStep
	return append([]Bucket{first}, buckets...), false
}

// ladder widens its buckets as their number grows.
type ladder struct {
	limit   int
	width   uint // a bucket spans 2^width places
	buckets map[int64]*rung
	last    *rung // the bucket of the point before, which is mostly that of the next
	lastAt  int64
}

type rung struct {
	Bucket
	end Point // the last point
}

func (l *ladder) add(place int64, p Point) {
	at := place >> l.width
	if l.last == nil || at != l.lastAt {
		if l.buckets == nil {
			l.buckets = map[int64]*rung{}
		}
		r := l.buckets[at]
		if r == nil {
			r = &rung{Bucket: newBucket(place, p), end: p}
			l.buckets[at] = r
			l.widen()
			return
		}
		l.last, l.lastAt = r, at
	}
	r := l.last
	if r.covers(place, p) {
		r.end = p
		r.Last, r.Value, r.Time = place, p.Value, p.Time
	}
	r.First = min(r.First, place)
	r.Min, r.Max = least(r.Min, p.Value), greatest(r.Max, p.Value)
	r.Points++
}

func newBucket(place int64, p Point) Bucket {
	return Bucket{First: place, Last: place, Min: p.Value, Max: p.Value, Value: p.Value, Time: p.Time, Points: 1}
}

// covers says whether a point at place comes after the last one of the bucket.
func (r *rung) covers(place int64, p Point) bool {
	return cmp.Or(cmp.Compare(place, r.Last), cmp.Compare(p.Seq, r.end.Seq),
		p.Time.Compare(r.end.Time), cmp.Compare(p.Source, r.end.Source)) > 0
}

// widen doubles the width until there are few enough buckets. At a width of 2^63
// there are two.
func (l *ladder) widen() {
	l.last = nil
	for len(l.buckets) > l.limit && l.width < 63 {
		l.width++
		wider := make(map[int64]*rung, len(l.buckets))
		for at, r := range l.buckets {
			if other := wider[at>>1]; other != nil {
				r.take(other)
			}
			wider[at>>1] = r
		}
		l.buckets = wider
	}
}

// take adds what other has. Places do not overlap.
func (r *rung) take(other *rung) {
	if other.Last > r.Last {
		r.end = other.end
	}
	r.merge(other.Bucket)
}

func (b *Bucket) merge(other Bucket) {
	if other.Last > b.Last {
		b.Last, b.Value, b.Time = other.Last, other.Value, other.Time
	}
	b.First = min(b.First, other.First)
	b.Min, b.Max = least(b.Min, other.Min), greatest(b.Max, other.Max)
	b.Points += other.Points
}

func (l *ladder) sorted() []Bucket {
	buckets := make([]Bucket, 0, len(l.buckets))
	for _, at := range slices.Sorted(maps.Keys(l.buckets)) {
		buckets = append(buckets, l.buckets[at].Bucket)
	}
	return buckets
}

// least is the smaller of two values by kind first: see better. Of the two zeros
// it is the negative one, so that the order of points does not show.
func least(a, b float64) float64 {
	if better(b, a, func(b, a float64) bool { return b < a || b == a && math.Signbit(b) }) {
		return b
	}
	return a
}

func greatest(a, b float64) float64 {
	if better(b, a, func(b, a float64) bool { return b > a || b == a && math.Signbit(a) }) {
		return b
	}
	return a
}

// Sample is the sampled curves of series: what a store's Sampled returns for
// those points.
func Sample(series []Series, n int) []SampledSeries {
	var all []SampledSeries
	for _, s := range series {
		if len(s.Points) == 0 {
			continue
		}
		points := slices.Clone(s.Points)
		slices.SortFunc(points, func(a, b Point) int {
			return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Seq, b.Seq))
		})
		sampler := NewSampler(n)
		for _, p := range points {
			sampler.Add(p)
		}
		sampled := SampledSeries{Attempt: s.Attempt, Metric: s.Metric}
		sampled.Buckets, sampled.BySeq = sampler.Buckets()
		all = append(all, sampled)
	}
	return all
}
