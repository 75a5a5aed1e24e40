package stop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
)

// course is what a trial reported: one report a step, steps ascending. It shares
// the trial's curve where that is in order already.
type course struct {
	objective suggest.Objective
	samples   []suggest.Sample
}

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
	inOrder := true
	for i := 1; i < len(curve) && inOrder; i++ {
		inOrder = curve[i-1].Step < curve[i].Step
	}
	if inOrder {
		return course{objective: o, samples: curve}
	}
	c := slices.Clone(curve)
	slices.SortStableFunc(c, func(a, b suggest.Sample) int { return cmp.Compare(a.Step, b.Step) })
	kept := c[:0]
	for i, sample := range c {
		if i+1 == len(c) || c[i+1].Step != sample.Step {
			kept = append(kept, sample)
		}
	}
	return course{objective: o, samples: kept}
}

// loss of a value: +Inf, the worst, when it is no finite number.
func loss(o suggest.Objective, value float64) float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return math.Inf(1)
	}
	return o.Loss(value)
}

// len is how many reports there are.
func (c course) len() int { return len(c.samples) }

// reports is how many there were before the curve was thinned out.
func (c course) reports() int {
	n := int64(0)
	for _, s := range c.samples {
		n += max(1, s.Reports)
	}
	return int(n)
}

// step of the i-th report.
func (c course) step(i int) int64 { return c.samples[i].Step }

// loss of the i-th report: smaller is better.
func (c course) loss(i int) float64 { return loss(c.objective, c.samples[i].Value) }

// last is the step of the last report; there must be one.
func (c course) last() int64 { return c.step(c.len() - 1) }

// final is the loss of the last report; there must be one.
func (c course) final() float64 { return c.loss(c.len() - 1) }

// upTo is the part up to the step, that included.
func (c course) upTo(step int64) course {
	n, found := slices.BinarySearchFunc(c.samples, step, compareStep)
	if found {
		n++
	}
	c.samples = c.samples[:n]
	return c
}

// from is the part from the step on, that included.
func (c course) from(step int64) course {
	n, _ := slices.BinarySearchFunc(c.samples, step, compareStep)
	c.samples = c.samples[n:]
	return c
}

func compareStep(s suggest.Sample, step int64) int { return cmp.Compare(s.Step, step) }

// split gives the first n samples and the others.
func (c course) split(n int) (before, after course) {
	before, after = c, c
	before.samples, after.samples = c.samples[:n], c.samples[n:]
	return before, after
}

// recent are the last samples, which stand for at least n reports, and before are the others.
func (c course) recent(n int) (before, recent course) {
	at, sum := c.len(), int64(0)
	for ; at > 0 && sum < int64(n); at-- {
		sum += max(1, c.samples[at-1].Reports)
	}
	return c.split(at)
}

// best is the smallest loss, +Inf when there is none.
func (c course) best() float64 {
	best := math.Inf(1)
	for i := range c.samples {
		best = min(best, c.loss(i))
	}
	return best
}

// diverging is how many reports without a number, one after another, say that
// there will be no other any more. One alone may be an accident of a batch.
const diverging = 4

// diverged is the step since which a course has had no number: diverging
// reports or more, the last of them among these. No rule that compares the best
// value so far sees that.
func (c course) diverged() (since int64, ok bool) {
	n := 0
	for n < c.len() && math.IsInf(c.loss(c.len()-1-n), 1) {
		n++
	}
	if n < diverging {
		return 0, false
	}
	return c.step(c.len() - n), true
}

// whyDiverged is what to say of it.
func whyDiverged(since int64) string {
	return fmt.Sprintf("it has reported no number since step %d", since)
}

// mean loss; +Inf when one of them is, or there is none.
func (c course) mean() float64 {
	if c.len() == 0 {
		return math.Inf(1)
	}
	mean := 0.0
	for i := range c.samples {
		mean += c.loss(i) / float64(c.len()) // no sum, which might overflow
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
func others(s suggest.Study, t *suggest.Trial) func(yield func(*suggest.Trial) bool) {
	return func(yield func(*suggest.Trial) bool) {
		for _, o := range s.Trials {
			if o.Number != t.Number && !yield(o) {
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

func startStepSetting(byDefault string) suggest.SettingHelp {
	return suggest.SettingHelp{
		Name: startStep, Default: byDefault,
		Help: "How many measurements a trial must have reported before it may be stopped, a whole number of at least 1. It counts reports: with one every 100 steps, 4 is at step 400.",
	}
}

func minTrialsSetting(byDefault, what string) suggest.SettingHelp {
	return suggest.SettingHelp{
		Name: minTrials, Default: byDefault,
		Help: "How many " + what + " there must be to compare with, a whole number of at least 1.",
	}
}

// count reads a setting that is a number of things: 1 or more.
func count(r *suggest.SettingsReader, name string, byDefault int64) int {
	return int(r.Int(name, byDefault, suggest.AtLeast(1)))
}
