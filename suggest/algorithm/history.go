package algorithm

import (
	"math"
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
)

// observation is a trial as models see it. It is never modified.
type observation struct {
	// x is the trial's point as a row; see encoding.row.
	x []float64
	// losses are the trial's values, negated for objectives to maximise, so
	// that smaller is better. Only of measured trials; always finite.
	losses []float64
	// violations of the constraints, in the study's order: above 0 where one
	// does not hold. Nil when the trial did not measure them.
	violations []float64
	// violation is the sum of those above 0; 0 when all hold, +Inf when they
	// were not measured.
	violation float64
	// pruned says that the losses are those of a trial that was stopped early.
	pruned bool
	part   part
	trial  *suggest.Trial
}

// part of a history that an observation belongs to.
type part uint8

const (
	unused part = iota
	isMeasured
	isFailed
	isRunning
)

func (o *observation) partOf() part {
	switch {
	case o.x == nil || o.trial.State == suggest.Killed:
		return unused
	case !o.trial.State.Finished():
		return isRunning
	case o.losses != nil:
		return isMeasured
	}
	return isFailed
}

// history is what models learn from. Each list is in order of trial number and
// has only trials whose points lie in the space.
type history struct {
	// measured trials have finite losses: succeeded ones and pruned ones.
	measured []*observation
	// failed trials ended without a usable value, which may be their point's
	// fault.
	failed []*observation
	// running trials are pending or running.
	running []*observation
	// warm are the measured trials of other studies, in the study's order.
	warm []*observation
	// next is the number of the next trial.
	next int
}

// historian reads studies. It keeps what it has read of the last one, so that
// reading a study again, with a few more results, costs little for each trial.
type historian struct {
	*encoding

	mu          sync.Mutex
	objectives  []suggest.Objective
	constraints []suggest.Constraint
	known       []*observation // of the last study, in order of trial number
	warm        []*observation // of the last study, in its order
}

func newHistorian(space suggest.Space) *historian {
	return &historian{encoding: newEncoding(space)}
}

// read gives the history of a study.
func (h *historian) read(s suggest.Study) history {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !sameDirections(h.objectives, s.Objectives) || !sameBounds(h.constraints, s.Constraints) {
		h.known, h.warm = nil, nil
	}
	h.objectives, h.constraints = slices.Clone(s.Objectives), slices.Clone(s.Constraints)
	h.known = h.observe(h.known, s.Trials)
	h.warm = h.observe(h.warm, s.Warm)
	out := history{measured: make([]*observation, 0, len(h.known)), next: s.NextNumber()}
	for _, o := range h.known {
		switch o.part {
		case isMeasured:
			out.measured = append(out.measured, o)
		case isFailed:
			out.failed = append(out.failed, o)
		case isRunning:
			out.running = append(out.running, o)
		case unused:
		}
	}
	for _, o := range h.warm {
		if o.x != nil && o.losses != nil {
			out.warm = append(out.warm, o)
		}
	}
	return out
}

// observe gives an observation for each trial: the known one where the trial at
// its place is still the same.
func (h *historian) observe(known []*observation, trials []*suggest.Trial) []*observation {
	out := make([]*observation, len(trials))
	for i, t := range trials {
		if i < len(known) && known[i].trial == t {
			out[i] = known[i]
		} else {
			out[i] = h.observation(t)
		}
	}
	return out
}

func (h *historian) observation(t *suggest.Trial) *observation {
	o := &observation{trial: t}
	if h.space.Contains(t.Point) {
		o.x = h.row(t.Point)
	}
	if t.State == suggest.Succeeded || t.State == suggest.Pruned {
		o.losses = lossesOf(h.objectives, t.Values)
		o.pruned = t.State == suggest.Pruned
		o.violations, o.violation = violationsOf(h.constraints, t.Constraints)
	}
	o.part = o.partOf()
	return o
}

// lossesOf is nil unless each objective has a finite value.
func lossesOf(objectives []suggest.Objective, values []float64) []float64 {
	if len(objectives) == 0 || len(values) < len(objectives) {
		return nil
	}
	losses := make([]float64, len(objectives))
	for i, o := range objectives {
		losses[i] = o.Loss(values[i])
		if math.IsNaN(losses[i]) || math.IsInf(losses[i], 0) {
			return nil
		}
	}
	return losses
}

func violationsOf(constraints []suggest.Constraint, values []float64) (each []float64, sum float64) {
	if len(constraints) == 0 {
		return nil, 0
	}
	if len(values) < len(constraints) {
		return nil, math.Inf(1)
	}
	for i, c := range constraints {
		v := c.Violation(values[i])
		each = append(each, v)
		sum += math.Max(v, 0)
	}
	return each, sum
}

func sameDirections(a, b []suggest.Objective) bool {
	return slices.EqualFunc(a, b, func(x, y suggest.Objective) bool {
		return (x.Direction == suggest.Maximize) == (y.Direction == suggest.Maximize)
	})
}

func sameBounds(a, b []suggest.Constraint) bool {
	equal := func(x, y *float64) bool { return x == y || x != nil && y != nil && *x == *y }
	return slices.EqualFunc(a, b, func(x, y suggest.Constraint) bool { return equal(x.Min, y.Min) && equal(x.Max, y.Max) })
}

// sameFloats compares bits: NaN is NaN.
func sameFloats(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}
