package suggest

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Direction says which way an objective improves. Its values are Katib's.
type Direction string

// The directions.
const (
	Minimize Direction = "minimize"
	Maximize Direction = "maximize"
)

// Objective is a metric to improve.
type Objective struct {
	// Name of the metric.
	Name string
	// Direction is Minimize or Maximize; empty means Minimize.
	Direction Direction
	// Goal ends the search once a trial reaches it. Nil: no goal.
	Goal *float64
}

// Loss turns a measured value into one that is better when it is smaller. NaN
// stays NaN.
func (o Objective) Loss(value float64) float64 {
	if o.Direction == Maximize {
		return -value
	}
	return value
}

// Reached says whether value meets the goal. A value that is NaN or infinite
// never does, nor does any value without a goal.
func (o Objective) Reached(value float64) bool {
	if o.Goal == nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return false
	}
	return o.Loss(value) <= o.Loss(*o.Goal)
}

// Constraint is a condition on another metric of a trial.
type Constraint struct {
	// Name of the metric.
	Name string
	// Min and Max are what the metric must not be below and above. Nil: no
	// bound. Without both, the metric must not be above 0.
	Min, Max *float64
}

// Violation is how far value is outside of the bounds: at most 0 when the
// constraint holds, and then how far inside. NaN is infinitely far outside.
func (c Constraint) Violation(value float64) float64 {
	if math.IsNaN(value) {
		return math.Inf(1)
	}
	if c.Min == nil && c.Max == nil {
		return value
	}
	far := math.Inf(-1)
	if c.Min != nil {
		far = math.Max(far, *c.Min-value)
	}
	if c.Max != nil {
		far = math.Max(far, value-*c.Max)
	}
	return far
}

// Study is all that an algorithm knows: a value without handles.
//
// A *Trial in a Study is immutable. A trial that changes (its state, values,
// curve or Meta) is a new *Trial with the same number, so that readers see what
// changed by comparing pointers. A caller that edits a trial in place breaks that
// rule: the answers go on being those to the trial as it was read first. Put
// grows a study by the rule.
type Study struct {
	// Space that is searched.
	Space Space
	// Objectives, the first of which is the main one.
	Objectives []Objective
	// Constraints on what the trials measure.
	Constraints []Constraint
	// Trials in any state, in order of their numbers, each number once.
	Trials []*Trial
	// Seed of all randomness.
	Seed uint64
	// Budget is how many trials there will be in all; 0 when not known.
	Budget int
	// Parallel is how many trials run at once; 0 when not known.
	Parallel int
	// Repeats says that trials are noisy, and that a point may be tried again to learn
	// more of it: each trial trains with a seed of its own.
	Repeats bool
	// Initial points are tried first, in their order.
	Initial []Point
	// Queued points are tried next, in their order, after the initial ones: each once,
	// also where a trial has the same point already.
	Queued []QueuedPoint
	// Warm are finished trials of other studies, whose points may lie in this
	// Space and whose values are on a scale of their own. Trials of one study
	// share the value of Meta["study"]. They are immutable too.
	Warm []*Trial
}

// QueuedPoint is a point that was asked for while the study ran.
type QueuedPoint struct {
	// ID is unique in the study; the trial has it as Meta[MetaQueued].
	ID    string
	Point Point
}

// MetaQueued is the key under which the trial of a queued point has the point's ID.
const MetaQueued = "queued"

// Put adds trials and replaces those with the same numbers. A trial that is equal
// to the one that is there changes nothing, so that its pointer stays. Copies of
// the Study made before keep the trials that they had.
func (s *Study) Put(trials ...*Trial) {
	own := false // whether the list was copied
	for _, t := range trials {
		i, found := s.find(t.Number)
		if found && s.Trials[i].Equal(t) {
			continue
		}
		if !own {
			s.Trials, own = append(make([]*Trial, 0, len(s.Trials)+len(trials)), s.Trials...), true
		}
		if found {
			s.Trials[i] = t
		} else {
			s.Trials = slices.Insert(s.Trials, i, t)
		}
	}
}

// Update puts a copy of the trial with the number that edit has changed, and says
// whether there is such a trial. What is behind the copy's slices and its Meta is
// still shared: edit replaces it.
func (s *Study) Update(number int, edit func(*Trial)) bool {
	before := s.Trial(number)
	if before == nil {
		return false
	}
	after := *before
	edit(&after)
	s.Put(&after)
	return true
}

// Trial finds the trial with a number; nil when there is none.
func (s Study) Trial(number int) *Trial {
	if i, found := s.find(number); found {
		return s.Trials[i]
	}
	return nil
}

func (s *Study) find(number int) (i int, found bool) {
	return slices.BinarySearchFunc(s.Trials, number, func(t *Trial, n int) int { return cmp.Compare(t.Number, n) })
}

// NextNumber is the number of the first trial that is not yet in the study:
// one above the highest, 0 in an empty study.
func (s Study) NextNumber() int {
	if len(s.Trials) == 0 {
		return 0
	}
	return max(0, s.Trials[len(s.Trials)-1].Number+1)
}

// Trial is one point, tried or being tried.
type Trial struct {
	// Number of the trial: counted from 0 in the order of the proposals. It
	// never changes and is never used twice.
	Number int
	// State of the trial.
	State State
	// Meta of the proposal that this trial came from. May be nil.
	Meta Meta
	// Point that is tried, as Space.Parse gives it. A trial that a user made may
	// lie outside of the space or be nil.
	Point Point
	// Values are the condensed objectives, in the order of Study.Objectives.
	// Empty until the trial has ended. NaN and infinities are kept.
	Values []float64
	// Constraints are what was measured for Study.Constraints, in their order;
	// empty when it was not measured.
	Constraints []float64
	// Resource is that of the proposal. Zero: all of it.
	Resource float64
	// Curve of the main objective, in order of steps.
	Curve []Sample
	// Duration is how long the trial ran, in seconds, without what it waited for a
	// machine. 0: not known.
	Duration float64
}

// Equal says whether both trials are the same in all that they hold. NaN equals
// NaN.
func (t *Trial) Equal(u *Trial) bool {
	return t == u || t.Number == u.Number && t.State == u.State && sameFloat(t.Resource, u.Resource) && sameFloat(t.Duration, u.Duration) &&
		t.Point.Equal(u.Point) && maps.Equal(t.Meta, u.Meta) &&
		slices.EqualFunc(t.Values, u.Values, sameFloat) && slices.EqualFunc(t.Constraints, u.Constraints, sameFloat) &&
		slices.EqualFunc(t.Curve, u.Curve, func(a, b Sample) bool {
			return a.Step == b.Step && sameFloat(a.Value, b.Value) && a.Reports == b.Reports
		})
}

// TrialSeed is the seed that the trial with a number trains with in a study with the
// given seed: from 0 to 2^31-1, so that any library takes it, and another one for each
// number.
func TrialSeed(seed uint64, number int) uint32 {
	seed = (seed ^ seed>>32) * 0x9e3779b97f4a7c15
	return (uint32(seed>>32) + uint32(number)*0x9e3779b1) & math.MaxInt32 // the factor is odd, so no two numbers meet
}

func sameFloat(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// Sample is one measurement on a curve.
type Sample struct {
	// Step counts epochs, batches or whatever the program prints.
	Step int64
	// Value of the main objective at that step.
	Value float64
	// Reports that it stands for, the last of which it is, where a long curve was thinned
	// out. 0: one.
	Reports int64
}

// Meta holds a few small values that an algorithm wants back with the trial.
type Meta map[string]string

// MetaParent is the key under which algorithms write the number of the trial that
// a trial continues, from its checkpoints where there are some.
const MetaParent = "parent"

// MetaRepeat is the key under which a trial that tries a point again has the number of
// the first trial of that point.
const MetaRepeat = "repeat"

// State is where a trial stands.
type State int

// The states. Failed, Unmeasured and Killed trials have no Values.
const (
	// Pending: proposed, not yet started.
	Pending State = iota
	// Running now.
	Running
	// Succeeded with Values.
	Succeeded
	// Pruned: stopped early by a rule. Values say how far it came.
	Pruned
	// Failed by itself; the point may be to blame.
	Failed
	// Unmeasured: it ended well but printed no objective.
	Unmeasured
	// Killed from outside: says nothing about the point.
	Killed
)

// Finished says whether the trial has ended.
func (s State) Finished() bool { return s >= Succeeded }

// String is the state as a word.
func (s State) String() string {
	switch s {
	case Pending:
		return "pending"
	case Running:
		return "running"
	case Succeeded:
		return "succeeded"
	case Pruned:
		return "pruned"
	case Failed:
		return "failed"
	case Unmeasured:
		return "unmeasured"
	case Killed:
		return "killed"
	}
	return "unknown"
}
