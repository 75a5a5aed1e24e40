// Package analysis says what can be learned from a study: which parameters
// matter, how the best result came about, how results are distributed. All
// functions are pure, and give values as the user measured them.
package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// ErrTooFew says that there are not enough results for an answer. Test for it
// with errors.Is.
var ErrTooFew = errors.New("there are too few finished trials to tell")

// result is a trial that succeeded with finite values.
type result struct {
	trial  *suggest.Trial
	losses []float64 // smaller is better
}

// results of a study by trial number. Pruned trials are left out, since their
// values say how they began; a trial counts only with a point in the space.
func results(s suggest.Study) []result {
	var out []result
	for _, t := range s.Trials {
		if t.State != suggest.Succeeded || len(t.Values) < len(s.Objectives) || !s.Space.Contains(t.Point) {
			continue
		}
		r, finite := result{trial: t}, true
		for k, o := range s.Objectives {
			loss := o.Loss(t.Values[k])
			r.losses = append(r.losses, loss)
			finite = finite && !math.IsNaN(loss) && !math.IsInf(loss, 0)
		}
		if finite {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b result) int { return cmp.Compare(a.trial.Number, b.trial.Number) })
	return out
}

// feasible are the results for which all constraints of the study hold.
func feasible(s suggest.Study) []result {
	return slices.DeleteFunc(results(s), func(r result) bool {
		for k, c := range s.Constraints {
			if k >= len(r.trial.Constraints) || c.Violation(r.trial.Constraints[k]) > 0 {
				return true
			}
		}
		return false
	})
}

func checkObjective(s suggest.Study, objective int) error {
	if objective < 0 || objective >= len(s.Objectives) {
		return fmt.Errorf("objective %d does not exist; the study has %d, counted from 0", objective, len(s.Objectives))
	}
	return nil
}

// dimension of a parameter as models see it.
func dimension(p suggest.Parameter) box.Dim {
	if p.Kind() == suggest.Categorical {
		count, _ := p.Count()
		return box.Dim{Kind: box.Choice, Count: int(count)}
	}
	return box.Dim{Kind: box.Continuous}
}

// row is the point as models see it; NaN where a parameter is not active.
func row(space suggest.Space, p suggest.Point) []float64 {
	x := make([]float64, len(p))
	for i, v := range p {
		switch index, _ := v.Index(); {
		case !v.InSpace():
			x[i] = math.NaN()
		case space.At(i).Kind() == suggest.Categorical:
			x[i] = float64(index)
		default:
			x[i] = space.At(i).Encode(v)
		}
	}
	return x
}

// activity is the probability under the prior that each parameter is active.
func activity(space suggest.Space) []float64 {
	known := make([]float64, space.Len())
	var of func(i int) float64
	of = func(i int) float64 {
		if parent, ok := space.At(i).When(); ok && known[i] == 0 {
			known[i] = of(parent) * chance(space.At(parent), space.At(i))
		} else if !ok {
			known[i] = 1
		}
		return known[i]
	}
	for i := range known {
		of(i)
	}
	return known
}

// chance is the probability that the parent, which is active, has a value for
// which the child is.
func chance(parent, child suggest.Parameter) float64 {
	const most = 4096
	count, _ := parent.Count()
	sum := 0.0
	if count > most {
		for k := range most {
			if child.ActiveFor(parent.Decode((float64(k) + 0.5) / most)) {
				sum += 1.0 / most
			}
		}
		return sum
	}
	for k := range count {
		if child.ActiveFor(parent.At(k)) {
			low, high := parent.Cell(k)
			sum += high - low
		}
	}
	return sum
}

// withinReach scales losses to about 1, and moves in what lies more than three
// times the distance of the quartiles outside of them: training that blew up
// would hide everything else.
func withinReach(losses []float64) []float64 {
	scale := 0.0
	for _, x := range losses {
		scale = math.Max(scale, math.Abs(x))
	}
	out := make([]float64, len(losses))
	if scale == 0 {
		return out
	}
	for i, x := range losses {
		out[i] = x / scale
	}
	sorted := slices.Sorted(slices.Values(out))
	n := len(sorted)
	low, high := sorted[n/4], sorted[n-1-n/4]
	reach := 3 * (high - low)
	if reach == 0 {
		return out
	}
	for i, x := range out {
		out[i] = (math.Min(math.Max(x, low-reach), high+reach) - low) / reach
	}
	return out
}
