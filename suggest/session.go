package suggest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Session is a study that grows by asking and telling: Ask for trials, run them,
// Tell their results. It is not for use by several goroutines at once. It keeps
// nothing but the Study: a Session that begins with the Study of another one goes on
// as that one would have.
type Session struct {
	// Study so far. Trials that were not asked for here are put into it.
	Study Study
	// Algorithm that is asked.
	Algorithm Algorithm
	// Stopper is asked at each report. Nil: no trial is stopped.
	Stopper Stopper

	asked  bool           // since the last preparation
	curves map[int]*Trial // by number, whose curves grew here: others may go on from all others
}

// Asked is a trial to run.
type Asked struct {
	// Number by which the trial is told.
	Number int
	// Seed for its randomness: another one for each trial.
	Seed uint32
	Proposal

	space Space
}

// Value that the trial has of a parameter; the zero Value where the parameter is not
// active. It panics when the space has no such parameter.
func (a Asked) Value(parameter string) Value {
	i, ok := a.space.Index(parameter)
	if !ok {
		panic(fmt.Sprintf("suggest: the space has no parameter %q", parameter))
	}
	return a.Point[i]
}

// Ask makes at most n trials, which are pending until they are told. Fewer than n
// means that results must be told first. The errors are those of the Algorithm,
// ErrExhausted among them.
func (s *Session) Ask(ctx context.Context, n int) ([]Asked, error) {
	s.asked = true
	proposals, err := s.Algorithm.Suggest(ctx, s.Study, n)
	if err != nil {
		return nil, err
	}
	first := s.Study.NextNumber()
	asked := make([]Asked, len(proposals))
	for i, p := range proposals {
		asked[i] = Asked{first + i, TrialSeed(s.Study.Seed, first+i), p, s.Study.Space}
	}
	s.Study.Put(PendingTrials(first, proposals)...)
	return asked, nil
}

// PendingTrials makes trials of proposals, numbered from first.
func PendingTrials(first int, proposals []Proposal) []*Trial {
	trials := make([]*Trial, len(proposals))
	for i, p := range proposals {
		trials[i] = &Trial{Number: first + i, Point: p.Point, Meta: p.Meta, Resource: p.Resource}
	}
	return trials
}

// Result is how a trial ended.
type Result struct {
	// Number of the trial.
	Number int
	// State that it ended in. The zero value stands for Succeeded.
	State State
	// Values of the objectives, for a trial that succeeded. A pruned one may have
	// none: then the end of its curve counts.
	Values []float64
	// Constraints are what was measured for Study.Constraints, in their order.
	Constraints []float64
	// Curve of the main objective, in order of steps, in place of what was reported.
	// Nil: what was reported stays.
	Curve []Sample
	// Duration is how long the trial ran, in seconds. 0: not known.
	Duration float64
}

// Tell says how trials ended: all of them or, with an error, none. Telling a trial
// again replaces what was told before.
func (s *Session) Tell(results ...Result) error {
	told := make([]*Trial, len(results))
	for i, r := range results {
		before := s.Study.Trial(r.Number)
		if before == nil {
			return fmt.Errorf("no such trial: %d; ask for one first", r.Number)
		}
		after := *before
		after.State = cmp.Or(r.State, Succeeded)
		after.Values, after.Constraints, after.Duration = r.Values, r.Constraints, r.Duration
		if r.Curve != nil {
			after.Curve = r.Curve
		}
		after.Values = s.Study.ValuesOf(&after)
		if want := len(s.Study.Objectives); after.State == Succeeded && len(after.Values) != want {
			return fmt.Errorf("trial %d has %d values; it must have %d, one for each objective", r.Number, len(after.Values), want)
		}
		told[i] = &after
	}
	s.Study.Put(told...)
	for _, t := range told {
		delete(s.curves, t.Number)
	}
	return nil
}

// Report notes a measurement of the main objective of a trial that runs, and says
// whether the Stopper gives the trial up, and why. Such a trial is told as Pruned.
func (s *Session) Report(number int, m Sample) (stop bool, why string, err error) {
	before := s.Study.Trial(number)
	switch {
	case before == nil:
		return false, "", fmt.Errorf("no such trial: %d; ask for one first", number)
	case before.State.Finished():
		return false, "", fmt.Errorf("trial %d has ended (%s); report only what runs", number, before.State)
	}
	t := *before
	if s.curves[number] != before {
		t.Curve = slices.Clip(t.Curve)
	}
	t.State, t.Curve = Running, withSample(t.Curve, m)
	s.Study.Put(&t)
	if s.curves == nil {
		s.curves = map[int]*Trial{}
	}
	s.curves[number] = s.Study.Trial(number)
	if s.Stopper == nil {
		return false, "", nil
	}
	if stop, why = s.Stopper.Stop(s.Study, &t); !stop {
		why = ""
	}
	return stop, why, nil
}

// Prepare lets the algorithm learn from results while no trials are waited for, if
// trials were asked for since the last time: a program that tells much before it asks
// again pays for it once.
func (s *Session) Prepare(ctx context.Context) {
	if p, ok := s.Algorithm.(Preparer); ok && s.asked {
		s.asked = false
		p.Prepare(ctx, s.Study)
	}
}

// Best is the trial with the best finite value of the first objective, of equals the
// first, among those that succeeded and meet all constraints. Nil: there is none.
func (s *Session) Best() *Trial {
	var best *Trial
	least := math.Inf(1)
	for _, t := range s.Study.Trials {
		if t.State != Succeeded || len(t.Values) == 0 || len(s.Study.Objectives) == 0 || !s.Study.feasible(t) {
			continue
		}
		if loss := s.Study.Objectives[0].Loss(t.Values[0]); loss < least && !math.IsInf(loss, -1) {
			best, least = t, loss
		}
	}
	return best
}

// Recommend is the point that is expected to be best, where trials repeat points
// (Study.Repeats). ok is false when there is too little to tell.
func (s *Session) Recommend(ctx context.Context) (r Recommendation, ok bool) {
	if of, can := s.Algorithm.(Recommender); can {
		return of.Recommend(ctx, s.Study)
	}
	return r, false
}

func (s *Study) feasible(t *Trial) bool {
	for i, c := range s.Constraints {
		if i >= len(t.Constraints) || c.Violation(t.Constraints[i]) > 0 {
			return false
		}
	}
	return true
}

// ValuesOf are the trial's values: for a pruned one without any, the end of its curve.
func (s *Study) ValuesOf(t *Trial) []float64 {
	if n := len(t.Curve); t.State == Pruned && len(t.Values) == 0 && n > 0 && len(s.Objectives) == 1 {
		return []float64{t.Curve[n-1].Value}
	}
	return t.Values
}

// withSample adds a sample to a curve in order of steps; a sample of the same step is
// replaced. What others hold of the curve does not change.
func withSample(curve []Sample, m Sample) []Sample {
	if n := len(curve); n == 0 || curve[n-1].Step < m.Step {
		return append(curve, m)
	}
	i, found := slices.BinarySearchFunc(curve, m.Step, func(have Sample, step int64) int { return cmp.Compare(have.Step, step) })
	curve = slices.Clone(curve)
	if found {
		curve[i] = m
		return curve
	}
	return slices.Insert(curve, i, m)
}
