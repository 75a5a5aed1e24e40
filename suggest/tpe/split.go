package tpe

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/pareto"
)

// tpeItem is an observation under the number of its trial, or under a negative
// number when it is from another study.
type tpeItem struct {
	id int
	x  []float64
	// weight of the observation; 0 where it depends on how old it is.
	weight float64
}

func byID(a, b tpeItem) int { return cmp.Compare(a.id, b.id) }

// tpeSplit are two classes of trials, each in order of identifier.
type tpeSplit struct {
	good, bad []tpeItem
	// share is that of the good ones among all that were measured.
	share float64
}

// splitByValue separates the best trials from the others. What failed or runs
// counts among the others. Trials of other studies compete by the share of
// their own study that is better, since their values are on another scale. The
// bad ones are written over buffer.
func splitByValue(h history.History, gamma float64, buffer []tpeItem) tpeSplit {
	k := goodCount(h, gamma)
	var good []int
	if len(h.Warm) == 0 {
		for _, i := range leaders(h.Measured, k) {
			good = append(good, h.Measured[i].Number)
		}
	} else {
		good = standardised(h, k)
	}
	weights := rankWeights(good)
	s := tpeSplit{good: make([]tpeItem, 0, len(weights)), bad: buffer[:0]}
	at := 0
	for item := range items(h) {
		for at < len(weights) && weights[at].id < item.id {
			at++
		}
		if at < len(weights) && weights[at].id == item.id {
			item.weight = weights[at].weight
			s.good = append(s.good, item)
		} else {
			s.bad = append(s.bad, item)
		}
	}
	s.share = float64(len(s.good)) / float64(max(1, len(h.Measured)+len(h.Warm)))
	return s
}

// rankWeights gives items, in order of identifier, with the weights of the good
// trials, which come best first: those of the recombination of CMA-ES (Hansen,
// arXiv 1604.00772, section 3.2), which fall with the logarithm of the rank.
func rankWeights(good []int) []tpeItem {
	out := make([]tpeItem, len(good))
	for i, id := range good {
		out[i] = tpeItem{id: id, weight: math.Log(float64(len(good)+1) / float64(i+1))}
	}
	slices.SortFunc(out, byID)
	return out
}

// goodCount is how many trials count as good.
func goodCount(h history.History, gamma float64) int {
	n := len(h.Measured) + len(h.Warm)
	k := int(math.Ceil(gamma * float64(n)))
	return min(k, n, tpeGoodMost(objectivesOf(h)))
}

// objectives is how many there are; 0 when nothing is measured.
func objectivesOf(h history.History) int {
	for _, list := range [][]*history.Row{h.Measured, h.Warm} {
		if len(list) > 0 {
			return len(list[0].Losses)
		}
	}
	return 0
}

// tpeGoodMost bounds how many trials count as good: 25 for one objective
// (hyperopt's and Optuna's bound), and more for several, whose fronts take more
// kernels to cover.
func tpeGoodMost(objectives int) int {
	if objectives > 1 {
		return 100
	}
	return 25
}

// feasible is how many trials keep all constraints.
func feasible(h history.History) (n int) {
	for _, list := range [][]*history.Row{h.Measured, h.Warm} {
		for _, o := range list {
			if o.Class != history.Infeasible {
				n++
			}
		}
	}
	return n
}

// items are all observations in order of identifier: those of other studies
// are the oldest. Numbers are unique by contract; of a study that breaks it the
// first counts.
func items(h history.History) iter.Seq[tpeItem] {
	return func(yield func(tpeItem) bool) {
		for i, o := range h.Warm {
			if !yield(tpeItem{id: i - len(h.Warm), x: o.X}) {
				return
			}
		}
		lists, last := [...][]*history.Row{h.Measured, h.Failed, h.Running}, math.MinInt
		for {
			first := -1
			for k, list := range lists {
				if len(list) > 0 && (first < 0 || list[0].Number < lists[first][0].Number) {
					first = k
				}
			}
			if first < 0 {
				return
			}
			o := lists[first][0]
			lists[first] = lists[first][1:]
			if id := o.Number; id != last {
				if last = id; !yield(tpeItem{id: id, x: o.X}) {
					return
				}
			}
		}
	}
}

// standardised gives the identifiers of the k best observations of several
// studies.
func standardised(h history.History, k int) []int {
	type place struct {
		quantile float64
		id       int
	}
	var best []place
	for _, i := range leaders(h.Measured, k) {
		best = append(best, place{id: h.Measured[i].Number})
	}
	for i := range best {
		best[i].quantile = (float64(i) + 0.5) / float64(len(h.Measured))
	}
	ids := make(map[*history.Row]int, len(h.Warm))
	for i, o := range h.Warm {
		ids[o] = i - len(h.Warm)
	}
	for _, source := range history.Sources(h.Warm) {
		for i, at := range leaders(source, k) {
			best = append(best, place{id: ids[source[at]], quantile: (float64(i) + 0.5) / float64(len(source))})
		}
	}
	slices.SortStableFunc(best, func(a, b place) int { return cmp.Compare(a.quantile, b.quantile) })
	out := make([]int, min(k, len(best)))
	for i := range out {
		out[i] = best[i].id
	}
	return out
}

// leaders are the positions of the k best observations, best first.
func leaders(all []*history.Row, k int) []int {
	if len(all) > 0 && len(all[0].Losses) > 1 {
		return leadersByFront(all, k)
	}
	return leadersBy(all, k, better)
}

// leadersBy keeps the best k in order while it goes through the list.
func leadersBy(all []*history.Row, k int, compare func(a, b *history.Row) int) []int {
	best := make([]int, 0, k+1)
	for i, o := range all {
		if len(best) == k && (k == 0 || compare(all[best[k-1]], o) <= 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, o, func(j int, o *history.Row) int {
			if compare(all[j], o) <= 0 {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, i)
		best = best[:min(k, len(best))]
	}
	return best
}

// better compares observations of one objective: complete ones by loss, then
// those Pruned early by how far they came and by loss, then those that break
// constraints by how much.
func better(a, b *history.Row) int {
	if c := cmp.Compare(a.Class, b.Class); c != 0 {
		return c
	}
	switch a.Class {
	case history.Infeasible:
		return cmp.Compare(a.Violation, b.Violation)
	case history.Pruned:
		if c := cmp.Compare(lastStep(b), lastStep(a)); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.Losses[0], b.Losses[0])
}

// lastStep is the step of the last measurement; -1 when there is none.
func lastStep(o *history.Row) int64 {
	if n := len(o.Curve); n > 0 {
		return o.Curve[n-1].Step
	}
	return -1
}

// tpeVolumes is the most objectives that hypervolumes are computed for, since the time
// that takes grows exponentially: with 10 of them, one split of 2,000 trials takes 40 s.
const tpeVolumes = 7

// leadersByFront ranks complete observations by their front; of the front that
// does not fit as a whole, those which together have the largest hypervolume
// (Ozaki et al. 2022), or with many objectives those which are the least crowded.
// The others follow as for one objective.
func leadersByFront(all []*history.Row, k int) []int {
	var whole []int
	var losses [][]float64
	for i, o := range all {
		if o.Class == history.Measured {
			whole = append(whole, i)
			losses = append(losses, o.Losses)
		}
	}
	var best []int
	for _, front := range pareto.Fronts(losses) {
		if len(best)+len(front) > k {
			points := make([][]float64, len(front))
			for i, at := range front {
				points[i] = losses[at]
			}
			picks := spreadOut(points, k-len(best))
			for i, at := range picks {
				picks[i] = front[at]
			}
			front = picks
		}
		for _, at := range front {
			best = append(best, whole[at])
		}
		if len(best) >= k {
			return best
		}
	}
	for _, i := range leadersBy(all, len(all), better) {
		if all[i].Class != history.Measured && len(best) < k {
			best = append(best, i)
		}
	}
	return best
}

// spreadOut picks k points of a front that together stand for all of it.
func spreadOut(points [][]float64, k int) []int {
	if len(points[0]) <= tpeVolumes {
		return pareto.Select(points, pareto.Reference(points), k)
	}
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	distance := pareto.Crowding(points)
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(distance[j], distance[i]) })
	return order[:k]
}

// splitByConstraint separates the trials that keep a constraint from those that
// do not. When none keeps it, the share gamma that is nearest counts as good.
func splitByConstraint(h history.History, constraint int, gamma float64) tpeSplit {
	var measured []*history.Row
	keeps := 0
	for _, o := range h.Measured {
		if constraint < len(o.Violations) {
			measured = append(measured, o)
			if o.Violations[constraint] <= 0 {
				keeps++
			}
		}
	}
	limit := 0.0
	if keeps == 0 && len(measured) > 0 {
		nearest := leadersBy(measured, int(math.Ceil(gamma*float64(len(measured)))), func(a, b *history.Row) int {
			return cmp.Compare(a.Violations[constraint], b.Violations[constraint])
		})
		limit = measured[nearest[len(nearest)-1]].Violations[constraint]
	}
	var s tpeSplit
	for _, o := range measured {
		item := tpeItem{id: o.Number, x: o.X, weight: 1}
		if o.Violations[constraint] <= limit {
			s.good = append(s.good, item)
		} else {
			s.bad = append(s.bad, item)
		}
	}
	s.share = float64(len(s.good)) / float64(max(1, len(measured)))
	return s
}
