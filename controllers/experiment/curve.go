package experiment

import (
	"cmp"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// curvePoints bounds a curve, of one attempt and of all. Of a longer one, each
// second, fourth, eighth, ... point and the one of the greatest step are looked at:
// places that stay the same while the curve grows, so that curves can be compared
// point by point.
const curvePoints = 256

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
	count   int64 // of the points without a step
	thinned
}

// thinned keeps each stride-th of the samples that it is given, and the one at
// the end.
type thinned struct {
	given, stride int
	kept          []sample
	end           sample
	at            int // the place of end among all, from 1
}

func (c *curve) add(a collector.Attempt, p collector.Point) {
	s := c.attempts[a.ID]
	if s == nil {
		if c.attempts == nil {
			c.attempts = map[string]*stretch{}
		}
		s = &stretch{started: a.Started, id: a.ID}
		c.attempts[a.ID] = s
	}
	step := p.Step
	if step == collector.NoStep {
		s.count++
		step = s.count
	}
	one := sample{step: step, value: p.Value}
	s.add(one, one.step >= s.end.step)
}

// add takes in a sample, and says whether it is the one at the end by now.
func (t *thinned) add(p sample, end bool) {
	t.stride = max(1, t.stride)
	if t.given++; end || t.given == 1 {
		t.end, t.at = p, t.given
	}
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
	if t.given == 0 || t.at%t.stride == 0 {
		return t.kept
	}
	return append(slices.Clip(t.kept), t.end)
}

// samples are the attempts' curves, the oldest first, each in order of steps.
// Points without a step are counted from 1, anew for each attempt.
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
			whole.add(p, true)
		}
	}
	return whole.samples()
}

// ordered are the samples in order of steps, those of one step as they came: a
// program may go back, and several sources are read one after the other.
func (s *stretch) ordered() []sample {
	samples := slices.Clone(s.samples())
	slices.SortStableFunc(samples, func(a, b sample) int { return cmp.Compare(a.step, b.step) })
	return samples
}
