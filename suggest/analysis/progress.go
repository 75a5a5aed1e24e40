package analysis

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
)

// Best is a result that was better than all before it.
type Best struct {
	// Trial's number.
	Trial int
	// Value of the objective, or what a Smoother says about it.
	Value float64
}

// Smoother says what the losses at the points are without their noise, such as
// the posterior mean of a Gaussian process. Losses are better when they are
// smaller.
type Smoother func(points []suggest.Point, losses []float64) ([]float64, error)

// BestSoFar lists, in order of trial numbers, each trial that was better than
// all with lower numbers. Trials that violate a constraint do not count. With a
// Smoother the values are those that it gives after all trials: under noise the
// lowest loss is mostly luck.
func BestSoFar(s suggest.Study, objective int, smooth Smoother) ([]Best, error) {
	if err := checkObjective(s, objective); err != nil {
		return nil, err
	}
	all := feasible(s)
	losses := lossesOf(all, objective)
	if smooth != nil && len(all) > 0 {
		points := make([]suggest.Point, len(all))
		for i, r := range all {
			points[i] = r.Point
		}
		smoothed, err := smooth(points, slices.Clone(losses))
		if err != nil {
			return nil, fmt.Errorf("smooth the results: %w", err)
		}
		if len(smoothed) != len(losses) {
			return nil, fmt.Errorf("smooth the results: %d values for %d points", len(smoothed), len(losses))
		}
		losses = smoothed
	}
	var out []Best
	least := math.Inf(1)
	for i, loss := range losses {
		if loss < least {
			least = loss
			out = append(out, Best{Trial: all[i].Number, Value: s.Objectives[objective].Loss(loss)})
		}
	}
	return out, nil
}

// Step is a step of a distribution function.
type Step struct {
	// Value of the objective.
	Value float64
	// Fraction of the results that are at least as good.
	Fraction float64
}

// Distribution is the empirical distribution function of an objective, from the
// best value to the worst. Searches are compared by it: the higher the better.
func Distribution(s suggest.Study, objective int) ([]Step, error) {
	if err := checkObjective(s, objective); err != nil {
		return nil, err
	}
	all, _ := compared(s, Level)
	losses := lossesOf(all, objective)
	slices.Sort(losses)
	var out []Step
	for i, loss := range losses {
		if i+1 < len(losses) && losses[i+1] == loss {
			continue
		}
		out = append(out, Step{Value: s.Objectives[objective].Loss(loss), Fraction: float64(i+1) / float64(len(losses))})
	}
	return out, nil
}

// Volume is a result that enlarged the hypervolume.
type Volume struct {
	// Trial's number.
	Trial int
	// Volume of what the results up to this one dominate, within the reference.
	Volume float64
}

// Hypervolume lists, in order of trial numbers, each trial that enlarged the
// hypervolume of the results so far. reference has a value for each objective
// that good results are better than; nil takes one from the results: see
// pareto.Reference. used is the reference. Trials that violate a constraint do
// not count. Its time grows exponentially with the number of objectives: the error
// is that of ctx when it ends before.
func Hypervolume(ctx context.Context, s suggest.Study, reference []float64) (growth []Volume, used []float64, err error) {
	all := feasible(s)
	if reference != nil && len(reference) != len(s.Objectives) {
		return nil, nil, fmt.Errorf("the reference has %d values for %d objectives; give one for each", len(reference), len(s.Objectives))
	}
	points := make([][]float64, len(all))
	for i, r := range all {
		points[i] = r.Losses
	}
	if reference == nil {
		if len(all) == 0 {
			return nil, nil, nil
		}
		reference = turned(s, pareto.Reference(points))
	}
	if slices.ContainsFunc(reference, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
		return nil, nil, fmt.Errorf("the reference %v has a value that is no finite number; replace it", reference)
	}
	ref := turned(s, reference)
	var front [][]float64
	volume := 0.0
	for i, p := range points {
		if slices.ContainsFunc(front, func(q []float64) bool { return pareto.Dominates(q, p) || slices.Equal(p, q) }) {
			continue
		}
		front = append(slices.DeleteFunc(front, func(q []float64) bool { return pareto.Dominates(p, q) }), p)
		v, err := pareto.HypervolumeWithin(ctx, front, ref)
		if err != nil {
			return nil, slices.Clone(reference), fmt.Errorf("measure the volume of %d points with %d objectives: %w", len(front), len(ref), err)
		}
		if v > volume {
			volume = v
			growth = append(growth, Volume{Trial: all[i].Number, Volume: v})
		}
	}
	return growth, slices.Clone(reference), nil
}

// turned turns losses into values, and values into losses.
func turned(s suggest.Study, values []float64) []float64 {
	out := make([]float64, len(values))
	for k, v := range values {
		out[k] = s.Objectives[k].Loss(v)
	}
	return out
}

// Front lists the numbers of the trials that no other beats, in ascending order.
// Trials that violate a constraint do not count.
func Front(s suggest.Study) []int {
	all := feasible(s)
	points := make([][]float64, len(all))
	for i, r := range all {
		points[i] = r.Losses
	}
	out := pareto.Front(points)
	for k, i := range out {
		out[k] = all[i].Number
	}
	slices.Sort(out)
	return out
}
