// Package analysis says what can be learned from a study: which parameters
// matter, how the best result came about, how results are distributed. All
// functions are pure, and give values as the user measured them.
package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
)

// ErrTooFew says that there are not enough results for an answer. Test for it
// with errors.Is.
var ErrTooFew = errors.New("there are too few points with results to tell")

// results are the trials that succeeded with finite values, by number, and how
// models see the space. Pruned trials are left out, since their values say how
// they began; a trial counts only with a point in the space.
func results(s suggest.Study) ([]*history.Row, *history.Encoding) {
	reader := history.NewReader(s.Space)
	all := reader.Read(s).Measured
	return slices.DeleteFunc(all, func(r *history.Row) bool { return r.State != suggest.Succeeded }), reader.Encoding
}

// Tried is what a Rule asks of a result: the resource, where 0 is all of it, and a key of
// the point.
type Tried struct {
	Resource float64
	Point    string
}

// Rule picks the resource whose results are compared with each other, of results of several
// resources. sides has 0 for the results of that resource, -1 for those of less, 1 for those
// of more. A point that was tried often counts once: it tells no more about the others.
type Rule func(all []Tried) (level float64, sides []int)

// triedOf is what a Rule asks of results.
func triedOf(all []*history.Row) []Tried {
	out := make([]Tried, len(all))
	for i, r := range all {
		out[i] = Tried{r.Resource, r.Key}
	}
	return out
}

// compared are the results that can be compared.
func compared(s suggest.Study, by Rule) ([]*history.Row, *history.Encoding) {
	all, encoding := results(s)
	_, sides := by(triedOf(all))
	out := all[:0]
	for i, r := range all {
		if sides[i] == 0 {
			out = append(out, r)
		}
	}
	return out, encoding
}

// Count is how many results a Rule compares, of which resource, and how many it leaves out.
func Count(s suggest.Study, by Rule) (level float64, kept, left int) {
	all, _ := results(s)
	level, sides := by(triedOf(all))
	for _, side := range sides {
		if side == 0 {
			kept++
		}
	}
	return level, kept, len(all) - kept
}

// Level is the Rule of charts: the largest resource that enough points had, or else the one
// that most had. The dashboard has the same, in data/view.ts.
func Level(all []Tried) (level float64, sides []int) { return levelOf(all, leastResults) }

// Broadest is the Rule of importance: the resource that most points had. What had more of
// it are mostly points that did well with that, too much alike to tell which parameter matters.
func Broadest(all []Tried) (level float64, sides []int) { return levelOf(all, len(all)) }

func levelOf(all []Tried, enough int) (level float64, sides []int) {
	whole, points, seen := 0.0, map[float64]int{}, map[Tried]bool{}
	for _, t := range all {
		whole = max(whole, t.Resource)
	}
	for _, t := range all {
		if t.Resource = cmp.Or(t.Resource, whole); !seen[t] {
			seen[t] = true
			points[t.Resource]++
		}
	}
	for _, r := range slices.Sorted(maps.Keys(points)) {
		if points[r] >= min(points[level], enough) {
			level = r
		}
	}
	for _, t := range all {
		sides = append(sides, cmp.Compare(cmp.Or(t.Resource, whole), level))
	}
	return level, sides
}

// feasible are the results for which all constraints of the study hold.
func feasible(s suggest.Study) []*history.Row {
	all, _ := results(s)
	return slices.DeleteFunc(all, func(r *history.Row) bool { return r.Class != history.Measured })
}

func checkObjective(s suggest.Study, objective int) error {
	if objective < 0 || objective >= len(s.Objectives) {
		return fmt.Errorf("objective %d does not exist; the study has %d, counted from 0", objective, len(s.Objectives))
	}
	return nil
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
