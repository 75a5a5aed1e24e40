package experiment

import (
	"cmp"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// curvePoints bounds a curve, of one attempt and of all. Of a longer one, each
// second, fourth, eighth, ... point and the last are looked at: places that stay
// the same while the curve grows, so that curves can be compared point by point.
const curvePoints = 512

// sample is a point on a curve.
type sample struct {
	step  int64
	value float64
}

// curve takes in the points of a trial, in the order of collector.Reader's Scan,
// and keeps a bounded part of them.
type curve struct {
	attempts map[string]*stretch
}

// stretch is the curve of one attempt.
type stretch struct {
	started time.Time
	id      string
	source  string
	mixed   bool // the points are of several sources
	count   int64
	thinned
}

// thinned keeps each stride-th of the samples that it is given, and the last.
type thinned struct {
	given, stride int
	kept          []sample
	last          sample
}

func (c *curve) add(a collector.Attempt, p collector.Point) {
	s := c.attempts[a.ID]
	if s == nil {
		if c.attempts == nil {
			c.attempts = map[string]*stretch{}
		}
		s = &stretch{started: a.Started, id: a.ID, source: p.Source}
		c.attempts[a.ID] = s
	}
	s.mixed = s.mixed || s.source != p.Source
	s.count++
	step := p.Step
	if step == collector.NoStep {
		step = s.count
	}
	s.thinned.add(sample{step: step, value: p.Value})
}

func (t *thinned) add(p sample) {
	t.stride = max(1, t.stride)
	t.given, t.last = t.given+1, p
	if t.given%t.stride != 0 {
		return
	}
	if t.kept = append(t.kept, p); len(t.kept) < curvePoints {
		return
	}
	half := t.kept[:0]
	for i := 1; i < len(t.kept); i += 2 {
		half = append(half, t.kept[i])
	}
	t.kept, t.stride = half, 2*t.stride
}

func (t *thinned) samples() []sample {
	if t.given == 0 || t.given%t.stride == 0 {
		return t.kept
	}
	return append(t.kept, t.last)
}

// samples are the attempts' curves, the oldest first. Points without a step are
// counted from 1, anew for each attempt.
func (c *curve) samples() []sample {
	all := make([]*stretch, 0, len(c.attempts))
	for _, s := range c.attempts {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *stretch) int { return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.id, b.id)) })
	if len(all) == 1 {
		return all[0].ordered()
	}
	var whole thinned
	for _, s := range all {
		for _, p := range s.ordered() {
			whole.add(p)
		}
	}
	return whole.samples()
}

// ordered are the samples in the order in which they were measured: by place, or
// by step where several sources reported, one after the other.
func (s *stretch) ordered() []sample {
	samples := s.thinned.samples()
	if s.mixed {
		slices.SortStableFunc(samples, func(a, b sample) int { return cmp.Compare(a.step, b.step) })
	}
	return samples
}
