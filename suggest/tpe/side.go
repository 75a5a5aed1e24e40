package tpe

import (
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/parzen"
)

// tpeSide is a density and the observations that it has.
type tpeSide struct {
	density *parzen.Mixture
	items   []tpeItem
	weights []float64
}

// set makes the density that of the items, which are in order of identifier.
func (s *tpeSide) set(want []tpeItem) {
	gone, come := difference(s.items, want)
	if len(gone)+len(come) > 8+len(want)/8 {
		ids, rows := make([]int, len(want)), make([][]float64, len(want))
		for i, item := range want {
			ids[i], rows[i] = item.id, item.x
		}
		s.density.Fill(ids, rows)
	} else {
		for _, item := range gone {
			s.density.Remove(item.id)
		}
		for _, item := range come {
			s.density.Insert(item.id, item.x)
		}
	}
	s.items = append(s.items[:0], want...)
	s.weigh()
}

// difference of two lists in order of identifier. An item whose row changed is
// in both results.
func difference(have, want []tpeItem) (gone, come []tpeItem) {
	i := 0
	for _, w := range want {
		for i < len(have) && have[i].id < w.id {
			gone = append(gone, have[i])
			i++
		}
		if i < len(have) && have[i].id == w.id {
			if history.SameRow(have[i].x, w.x) {
				i++
				continue
			}
			gone = append(gone, have[i])
			i++
		}
		come = append(come, w)
	}
	return append(gone, have[i:]...), come
}

// insert adds one item.
func (s *tpeSide) insert(item tpeItem) {
	at, known := slices.BinarySearchFunc(s.items, item, byID)
	if known {
		return
	}
	s.items = slices.Insert(s.items, at, item)
	s.density.Insert(item.id, item.x)
	s.weigh()
}

// weigh gives items the weight that they have, and of the others 1 to the
// newest and less to older ones, linearly down to 1/n (hyperopt's rule).
func (s *tpeSide) weigh() {
	n := len(s.items)
	s.weights = slices.Grow(s.weights[:0], n)[:n]
	old := n - tpeRecent
	for i := range s.weights {
		switch {
		case s.items[i].weight > 0:
			s.weights[i] = s.items[i].weight
		case i < old:
			s.weights[i] = 1/float64(n) + (1-1/float64(n))*float64(i)/float64(old)
		default:
			s.weights[i] = 1
		}
	}
	s.density.Weigh(s.weights)
}
