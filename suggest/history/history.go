// Package history is the one reader of a growing study. A Reader gives algorithms
// the trials as rows (the point in the unit box, losses, violations, a class); a
// Follower says besides what has changed since the last time; Generations replays
// what algorithms wrote into the metadata of their trials.
package history

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
)

// Class of a trial, the first thing that trials are ranked by: smaller is better
// among those that have ended.
type Class uint8

// The classes.
const (
	// Measured: it has a finite value for each objective, and all constraints hold.
	Measured Class = iota
	// Pruned is the same for a trial that was stopped early.
	Pruned
	// Infeasible: measured, and a constraint does not hold.
	Infeasible
	// Failed: it ended without a usable value, which may be its point's fault.
	Failed
	// Running: pending or running.
	Running
	// Void says nothing about the point: killed from outside, or not in the space.
	Void
)

// Ended says whether there is something to learn from such a trial.
func (c Class) Ended() bool { return c < Running }

// Row is a trial as algorithms read it. It is immutable.
type Row struct {
	*suggest.Trial
	// X is the trial's point as Encoding.Row gives it; nil when it lies outside of
	// the space.
	X []float64
	// Class of the trial.
	Class Class
	// Losses are the trial's values, negated for objectives to maximise, so that
	// smaller is better. Nil unless the trial is Measured, Pruned or Infeasible.
	Losses []float64
	// Violations of the constraints, in the study's order: above 0 where one does
	// not hold. Nil when the trial did not measure them.
	Violations []float64
	// Violation is the sum of those above 0; 0 when all hold, +Inf when they were
	// not measured.
	Violation float64
	// Key of the point (Space.Key); empty when it lies outside of the space.
	Key string
}

// Compare orders rows of trials that have ended by the main loss, best first; a
// tie is 0. Constraints come before losses (Deb, "An efficient constraint handling
// method for genetic algorithms", 2000).
func (r *Row) Compare(other *Row) int {
	if c := cmp.Compare(r.Class, other.Class); c != 0 {
		return c
	}
	if r.Class == Infeasible {
		if c := cmp.Compare(r.Violation, other.Violation); c != 0 {
			return c
		}
	}
	if r.Losses == nil {
		return 0
	}
	return cmp.Compare(r.Losses[0], other.Losses[0])
}

// History is what algorithms learn from. All lists are in order of trial number.
type History struct {
	// Rows has one for each trial of the study.
	Rows []*Row
	// Measured trials have finite losses: those that are Measured, Pruned or
	// Infeasible.
	Measured []*Row
	// Failed and Running trials are those of these classes.
	Failed, Running []*Row
	// Warm are the measured trials of other studies, in the study's order.
	Warm []*Row
	// Next is the number of the next trial.
	Next int
	// Objectives is how many the study has.
	Objectives int
}

// Reader reads the studies that one algorithm is asked about. It keeps the rows of
// the last one, and makes new ones for those trials only that are not the same
// (suggest.Study): a reading of an unchanged study has the same rows. It may be
// used by several goroutines at once.
type Reader struct {
	*Encoding

	mu          sync.Mutex
	objectives  []suggest.Objective
	Constraints []suggest.Constraint
	rows        []*Row // of the last study
	warm        []*Row // of the last study, measured or not
}

// NewReader makes a reader of studies of the space.
func NewReader(space suggest.Space) *Reader { return &Reader{Encoding: NewEncoding(space)} }

// Read gives the history of a study.
func (r *Reader) Read(s suggest.Study) History {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !sameDirections(r.objectives, s.Objectives) || !sameBounds(r.Constraints, s.Constraints) {
		r.rows, r.warm = nil, nil
		r.objectives, r.Constraints = slices.Clone(s.Objectives), slices.Clone(s.Constraints)
	}
	r.rows = r.read(r.rows, s.Trials, func(a, b *suggest.Trial) bool { return a == b })
	r.warm = r.read(r.warm, s.Warm, (*suggest.Trial).Equal)
	h := History{Rows: r.rows, Measured: make([]*Row, 0, len(r.rows)), Next: s.NextNumber(), Objectives: len(s.Objectives)}
	for _, row := range r.rows {
		switch {
		case row.Losses != nil:
			h.Measured = append(h.Measured, row)
		case row.Class == Failed:
			h.Failed = append(h.Failed, row)
		case row.Class == Running:
			h.Running = append(h.Running, row)
		}
	}
	for _, row := range r.warm {
		if row.Losses != nil {
			h.Warm = append(h.Warm, row)
		}
	}
	return h
}

// read gives a row for each trial: the known one where the trial at its place is
// the same.
func (r *Reader) read(known []*Row, trials []*suggest.Trial, same func(a, b *suggest.Trial) bool) []*Row {
	out := make([]*Row, len(trials))
	for i, t := range trials {
		if i < len(known) && same(known[i].Trial, t) {
			out[i] = known[i]
		} else {
			out[i] = r.row(t)
		}
	}
	return out
}

func (r *Reader) row(t *suggest.Trial) *Row {
	row := &Row{Trial: t, Class: Void}
	key, ok := r.Space.Key(t.Point)
	if !ok {
		return row
	}
	row.Key, row.X = key, r.Row(t.Point)
	switch t.State {
	case suggest.Pending, suggest.Running:
		row.Class = Running
	case suggest.Succeeded, suggest.Pruned:
		row.Class = Failed
		if row.Losses = LossesOf(r.objectives, t.Values); row.Losses == nil {
			break
		}
		row.Violations, row.Violation = ViolationsOf(r.Constraints, t.Constraints)
		switch {
		case row.Violation > 0:
			row.Class = Infeasible
		case t.State == suggest.Pruned:
			row.Class = Pruned
		default:
			row.Class = Measured
		}
	case suggest.Killed:
	default:
		row.Class = Failed
	}
	return row
}

// Sources are the rows of a warm start by study (Meta["study"]), in the order in
// which the studies first occur. Values of different studies do not compare.
func Sources(warm []*Row) [][]*Row {
	var out [][]*Row
	at := map[string]int{}
	for _, r := range warm {
		name := r.Meta["study"]
		k, ok := at[name]
		if !ok {
			k = len(out)
			at[name], out = k, append(out, nil)
		}
		out[k] = append(out[k], r)
	}
	return out
}

// LossesOf turns values into losses; nil unless each objective has a finite one.
func LossesOf(objectives []suggest.Objective, values []float64) []float64 {
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

// ViolationsOf are the violations of constraints by what was measured, and the sum
// of those above 0: nil and +Inf when too little was measured.
func ViolationsOf(constraints []suggest.Constraint, values []float64) (each []float64, sum float64) {
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
