package stop

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
)

// report is one measurement of a trial.
type report struct {
	step int64
	loss float64 // smaller is better; +Inf when it is NaN or infinite
}

// course is what a trial reported: one report a step, steps ascending.
type course []report

// objective is the main one of the study.
func objective(s suggest.Study) suggest.Objective {
	if len(s.Objectives) == 0 {
		return suggest.Objective{}
	}
	return s.Objectives[0]
}

// readCourse brings a curve in order. Of several reports for one step, as after
// a retry, the last counts.
func readCourse(o suggest.Objective, curve []suggest.Sample) course {
	c := make(course, len(curve))
	for i, sample := range curve {
		c[i] = report{step: sample.Step, loss: loss(o, sample.Value)}
	}
	byStep := func(a, b report) int { return cmp.Compare(a.step, b.step) }
	if !slices.IsSortedFunc(c, byStep) {
		slices.SortStableFunc(c, byStep)
	}
	kept := c[:0]
	for i, r := range c {
		if i+1 == len(c) || c[i+1].step != r.step {
			kept = append(kept, r)
		}
	}
	return kept
}

// loss of a value: +Inf, the worst, when it is no finite number.
func loss(o suggest.Objective, value float64) float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return math.Inf(1)
	}
	return o.Loss(value)
}

// last is the step of the last report; c must not be empty.
func (c course) last() int64 { return c[len(c)-1].step }

// upTo is the part up to the step, that included.
func (c course) upTo(step int64) course {
	n, found := slices.BinarySearchFunc(c, step, func(r report, s int64) int { return cmp.Compare(r.step, s) })
	if found {
		n++
	}
	return c[:n]
}

// from is the part from the step on, that included.
func (c course) from(step int64) course {
	n, _ := slices.BinarySearchFunc(c, step, func(r report, s int64) int { return cmp.Compare(r.step, s) })
	return c[n:]
}

// best is the smallest loss, +Inf when there is none.
func (c course) best() float64 {
	best := math.Inf(1)
	for _, r := range c {
		best = min(best, r.loss)
	}
	return best
}

// mean loss; +Inf when one of them is, or there is none.
func (c course) mean() float64 {
	if len(c) == 0 {
		return math.Inf(1)
	}
	mean := 0.0
	for _, r := range c {
		mean += r.loss / float64(len(c)) // no sum, which might overflow
	}
	return mean
}

// quantile of sorted numbers, not NaN, as numpy interpolates it by default:
// 0 <= q <= 1 and there is at least one.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(at)
	a, b := sorted[below], sorted[min(below+1, len(sorted)-1)]
	part := at - float64(below)
	if a == b || part == 0 {
		return a
	}
	return a*(1-part) + b*part
}

// others are the trials of the study except the given one.
func others(s suggest.Study, t suggest.Trial) func(yield func(suggest.Trial) bool) {
	return func(yield func(suggest.Trial) bool) {
		for i := range s.Trials {
			if s.Trials[i].Number != t.Number && !yield(s.Trials[i]) {
				return
			}
		}
	}
}

// text is a loss as the user knows its value.
func text(o suggest.Objective, loss float64) string {
	if math.IsInf(loss, 0) {
		return "not a number"
	}
	return strconv.FormatFloat(o.Loss(loss), 'g', 4, 64)
}

const (
	minTrials = "min_trials_required"
	startStep = "start_step"
)

func startStepSetting(byDefault string) Setting {
	return Setting{
		Name: startStep, Default: byDefault,
		Help: "How many measurements a trial must have reported before it may be stopped, a whole number of at least 1.",
	}
}

func minTrialsSetting(byDefault, what string) Setting {
	return Setting{
		Name: minTrials, Default: byDefault,
		Help: "How many " + what + " there must be to compare with, a whole number of at least 1.",
	}
}
