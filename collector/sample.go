package collector

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Limits of the number of buckets of a sampled series.
const (
	MinBuckets = 2
	MaxBuckets = 1 << 16
)

// CheckBuckets refuses numbers of buckets that a Sampler does not take.
func CheckBuckets(n int) error {
	if n < MinBuckets || n > MaxBuckets {
		return fmt.Errorf("%d buckets were asked for: ask for %d to %d", n, MinBuckets, MaxBuckets)
	}
	return nil
}

// Bucket condenses the points of a stretch of a curve.
type Bucket struct {
	// First and Last are the least and greatest place of its points: their step,
	// or their number where SampledSeries.Stepless says so.
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
	// Stepless: no point states a step, and places are counted from 1.
	Stepless bool
	// Buckets are in order of place.
	Buckets []Bucket
}

// Sampler puts the points of one metric of one attempt into at most n buckets,
// those of a Thinner. Memory is bounded by n.
//
// A point without a step belongs to the step stated last before it in its source.
// Where some points of a curve belong to a step and others to none, those others
// are one more bucket, the first, whose First and Last are NoStep. Where no point
// states a step, points are counted from 1.
type Sampler struct {
	steps             stepCarrier
	stepped, stepless *Thinner
	count             int64 // of points that belong to no step
	from, to          int64 // places that are wanted
}

// NewSampler returns a sampler of at most n buckets; n is one that CheckBuckets
// lets pass.
func NewSampler(n int) *Sampler {
	return &Sampler{stepped: NewThinner(n), stepless: NewThinner(n), from: math.MinInt64, to: math.MaxInt64}
}

// Within leaves points out whose places are not in [from, to].
func (s *Sampler) Within(from, to int64) { s.from, s.to = from, to }

// Add takes in a point. Points come in order of Source, then Seq.
func (s *Sampler) Add(p Point) {
	p.Step = s.steps.of(&p)
	into, place := s.stepped, p.Step
	if p.Step == NoStep {
		s.count++
		into, place = s.stepless, s.count
	}
	if s.from <= place && place <= s.to {
		into.Add(place, p)
	}
}

// Curve samples what counts of one metric of all attempts of a trial, in at most n
// buckets, as Aggregator and Sampler say. So a curve never goes back in steps.
type Curve struct {
	lineage lineage
	sampler *Sampler
}

// NewCurve returns a curve of at most n buckets; n is one that CheckBuckets lets
// pass.
func NewCurve(n int) *Curve { return &Curve{sampler: NewSampler(n)} }

// Within leaves points out whose places are not in [from, to].
func (c *Curve) Within(from, to int64) { c.sampler.Within(from, to) }

// Add takes in a point. Points come as Aggregator.Add takes them.
func (c *Curve) Add(attempt Attempt, p Point) {
	ok, anew := c.lineage.takes(&p)
	if anew {
		from, to := c.sampler.from, c.sampler.to
		c.sampler = NewSampler(c.sampler.stepped.limit)
		c.sampler.Within(from, to)
	}
	if ok && c.lineage.counts(attempt, &p) {
		c.sampler.Add(p)
	}
}

// Buckets returns the buckets so far, in order of place: steps, or numbers from 1
// where no point that counts belongs to a step.
func (c *Curve) Buckets() []Bucket {
	buckets, _ := c.sampler.Buckets()
	if len(buckets) > 0 && buckets[0].Last == NoStep {
		return buckets[1:] // of no step
	}
	return buckets
}

// Stepped reports whether the places are steps.
func (c *Curve) Stepped() bool { return c.sampler.stepped.Len() > 0 }

// Buckets returns the buckets so far. More points may follow.
func (s *Sampler) Buckets() (buckets []Bucket, stepless bool) {
	if s.stepped.Len() == 0 {
		return bucketsOf(s.stepless.Stretches()), true
	}
	stretches := s.stepped.Stretches()
	if without := s.stepless.Stretches(); len(without) > 0 {
		first := without[0]
		for i := range without[1:] {
			first.join(&without[1+i])
		}
		first.From, first.To = NoStep, NoStep
		stretches = append([]Stretch{first}, stretches...)
	}
	return bucketsOf(stretches), false
}

func bucketsOf(stretches []Stretch) []Bucket {
	buckets := make([]Bucket, len(stretches))
	for i, s := range stretches {
		buckets[i] = Bucket{First: s.From, Last: s.To, Min: s.Least.Value, Max: s.Greatest.Value,
			Value: s.Last.Value, Time: s.Last.Time, Points: s.Points}
	}
	return buckets
}

// Sample reads the curves of the named metrics of a trial (all when none is named)
// with at most buckets buckets each, ordered by attempt start, then metric.
func Sample(ctx context.Context, s Scanner, trialUID string, buckets int, metrics ...string) ([]SampledSeries, error) {
	if err := CheckBuckets(buckets); err != nil {
		return nil, err
	}
	type key struct {
		attempt Attempt
		metric  string
	}
	samplers := map[key]*Sampler{}
	err := s.Scan(ctx, trialUID, metrics, func(a Attempt, p Point) error {
		k := key{a, p.Metric}
		if samplers[k] == nil {
			samplers[k] = NewSampler(buckets)
		}
		samplers[k].Add(p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	keys := slices.SortedFunc(maps.Keys(samplers), func(a, b key) int {
		return cmp.Or(CompareAttempts(a.attempt, b.attempt), cmp.Compare(a.metric, b.metric))
	})
	var all []SampledSeries
	for _, k := range keys {
		series := SampledSeries{Attempt: k.attempt, Metric: k.metric}
		series.Buckets, series.Stepless = samplers[k].Buckets()
		all = append(all, series)
	}
	return all, nil
}
