package study

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/suggest"
)

// curvePoints bounds a curve, of one attempt and of all. Of a longer one, every
// second, fourth, eighth, ... point is kept and the one with the greatest step:
// places that stay the same while the curve grows, so that curves can be compared
// point by point.
const curvePoints = 256

// curve takes in the points of a trial, in the order of collector.Reader's Scan,
// and keeps a bounded part of them.
type curve map[string]*attemptCurve

// attemptCurve is the curve of one attempt. A point without a step belongs to the
// last step stated before it in its source; where there is none, such points are
// counted from 1.
type attemptCurve struct {
	started time.Time
	id      string
	source  string // of the last point
	step    int64  // last stated in source, or collector.NoStep
	count   int64  // of the points that belong to no step
	thinned
}

func (c curve) add(a collector.Attempt, p collector.Point) {
	s := c[a.ID]
	if s == nil {
		s = &attemptCurve{started: a.Started, id: a.ID, step: collector.NoStep}
		c[a.ID] = s
	}
	if p.Step != collector.NoStep || p.Source != s.source {
		s.source, s.step = p.Source, p.Step
	}
	step := s.step
	if step == collector.NoStep {
		s.count++
		step = s.count
	}
	s.thinned.add(suggest.Sample{Step: step, Value: p.Value}, step >= s.end.Step)
}

// samples are the attempts' curves, the oldest first, each in order of steps.
func (c curve) samples() []suggest.Sample {
	all := slices.SortedFunc(maps.Values(c), func(a, b *attemptCurve) int {
		return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.id, b.id))
	})
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
func (s *attemptCurve) ordered() []suggest.Sample {
	samples := slices.Clone(s.samples())
	slices.SortStableFunc(samples, func(a, b suggest.Sample) int { return cmp.Compare(a.Step, b.Step) })
	return samples
}

// thinned keeps every stride-th of the samples that it is given, and the one at
// the end.
type thinned struct {
	given, stride int
	kept          []suggest.Sample
	end           suggest.Sample
	at            int // the place of end among all, from 1
}

// add takes in a sample, and says whether it is the one at the end by now.
func (t *thinned) add(p suggest.Sample, end bool) {
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

func (t *thinned) samples() []suggest.Sample {
	if t.given == 0 || t.at%t.stride == 0 {
		return t.kept
	}
	return append(slices.Clip(t.kept), t.end)
}
