package bayes

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
)

const (
	// levelFactor is between the steps of a curve that the model sees.
	levelFactor = 3
	// levelsSeen is how many steps of a curve it sees at most.
	levelsSeen = 6
)

// levels are the resources at which a model looks at curves, ascending: the
// last is that of a whole trial. Fewer than two: it does not.
type levels []int64

// joint says whether the model is one over points and resources.
func (l levels) joint() bool { return len(l) > 1 }

// coordinate of a resource on the unit scale, on which a factor is a distance.
func (l levels) coordinate(resource float64) float64 {
	first, last := float64(l[0]), float64(l[len(l)-1])
	return math.Min(math.Max(math.Log(resource/first)/math.Log(last/first), 0), 1)
}

// reached is the highest level up to a step; -1: none.
func (l levels) reached(step int64) int {
	k := -1
	for k+1 < len(l) && l[k+1] <= step {
		k++
	}
	return k
}

// levelsOf are those of a study in which a rule stops trials: the model then
// learns from what each curve says on the way, so that trials that were stopped
// are compared with others at the same step. A whole trial is as long as the
// longest one that was not stopped.
func levelsOf(s suggest.Study) levels {
	if len(s.Objectives) != 1 {
		return nil
	}
	var whole, any int64
	stopped := false
	for _, t := range s.Trials {
		if len(t.Curve) == 0 {
			continue
		}
		last := t.Curve[len(t.Curve)-1].Step
		any = max(any, last)
		switch t.State {
		case suggest.Succeeded:
			whole = max(whole, last)
		case suggest.Pruned:
			stopped = true
		}
	}
	if !stopped {
		return nil
	}
	if whole == 0 {
		whole = any
	}
	var out levels
	for step := whole; step >= 1 && len(out) < levelsSeen; step /= levelFactor {
		out = append(out, step)
	}
	slices.Reverse(out)
	return out
}

// unfold makes the data those of points and resources: there is an observation
// for each level that a curve has reached.
func (d *data) unfold(running []*history.Row) {
	whole := func(from []*history.Row) []*history.Row {
		out := make([]*history.Row, len(from))
		for i, o := range from {
			out[i] = shortened(o, 1, o.Losses)
		}
		return out
	}
	measured := d.measured
	d.measured, d.failed, d.warm = nil, whole(d.failed), whole(d.warm)
	for _, o := range measured {
		d.measured = append(d.measured, d.onCurve(o)...)
	}
	for _, o := range running {
		for _, on := range d.onCurve(o) {
			if len(d.study.Constraints) > 0 {
				on.Violation = math.Inf(1) // not known yet: nothing to improve upon
			}
			d.measured = append(d.measured, on)
		}
	}
}

// shortened is the observation with a resource, on the unit scale, and losses of its
// own.
func shortened(o *history.Row, coordinate float64, losses []float64) *history.Row {
	out := *o
	out.X = append(slices.Clone(o.X), coordinate)
	out.Losses = losses
	if ended := *o.Trial; ended.State == suggest.Pruned {
		ended.State = suggest.Succeeded // at this resource it is complete
		out.Trial = &ended
	}
	return &out
}

// onCurve are the observations of a trial at the levels that its curve has
// reached, and at its end.
func (d *data) onCurve(o *history.Row) []*history.Row {
	l, objective := d.levels, d.study.Objectives[0]
	end := float64(l[len(l)-1])
	ended := o.State == suggest.Succeeded
	if r := o.Resource; ended && r > 0 {
		end = math.Min(end, r)
	}
	var out []*history.Row
	look := func(sample suggest.Sample) {
		out = append(out, shortened(o, l.coordinate(float64(sample.Step)), []float64{objective.Loss(sample.Value)}))
	}
	seen, latest := -1, suggest.Sample{Step: -1} // the level, and the last report that is a number
	var looked int64
	for _, sample := range inSteps(o.Curve) {
		if !finite(sample.Value) || ended && float64(sample.Step) >= end {
			continue
		}
		latest = sample
		if reached := l.reached(sample.Step); reached > seen {
			seen, looked = reached, sample.Step
			look(sample)
		}
	}
	if o.State == suggest.Pruned && 2*latest.Step > 3*looked && latest.Step > 0 {
		look(latest)
	}
	switch {
	case ended:
		out = append(out, shortened(o, l.coordinate(end), o.Losses))
	case len(out) == 0 && o.Losses != nil: // stopped, without a curve
		out = append(out, shortened(o, 0, o.Losses))
	}
	return out
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// inSteps gives a curve in order of steps.
func inSteps(curve []suggest.Sample) []suggest.Sample {
	byStep := func(a, b suggest.Sample) int { return cmp.Compare(a.Step, b.Step) }
	if slices.IsSortedFunc(curve, byStep) {
		return curve
	}
	curve = slices.Clone(curve)
	slices.SortStableFunc(curve, byStep)
	return curve
}

// whole is the row with all of the resource.
func whole(row []float64) []float64 {
	row = slices.Clone(row)
	row[len(row)-1] = 1
	return row
}

// wholes are the rows with all of the resource, each once.
func wholes(rows [][]float64) [][]float64 {
	seen := make(map[string]bool, len(rows))
	var out [][]float64
	for _, row := range rows {
		row = whole(row)
		if key := history.RowKey(row); !seen[key] {
			seen[key] = true
			out = append(out, row)
		}
	}
	return out
}
