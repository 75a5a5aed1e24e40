package tpe

import (
	"fmt"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
)

// tpeLayout says which parameters have a density in common, and when each is
// active.
type tpeLayout struct {
	// groups of columns. Within a group, and from group to group, a parameter
	// comes after the one that it depends on.
	groups [][]int
	// stepped has for each group its Ordered columns on which no other depends,
	// at most maxStepped.
	stepped [][]int
	// most has for each group how many candidates are drawn at most.
	most []int
	// parents has for each column what it depends on.
	parents []tpeParent
}

// tpeParent is the condition of a column.
type tpeParent struct {
	column int    // -1: always active
	in     []bool // by the parent's index; nil when the parent has too many values
}

func newTPELayout(e *history.Encoding, c Config) tpeLayout {
	d := e.Space.Len()
	l := tpeLayout{parents: make([]tpeParent, d)}
	for i := range d {
		l.parents[i] = newTPEParent(e, i)
	}
	order := l.order()
	multivariate := c.multivariate == yes
	if c.multivariate == Auto {
		multivariate = e.Space.Conditional() || !mostlyChoices(e.Dims)
	}
	switch {
	case d == 0:
	case !multivariate:
		for _, i := range order {
			l.groups = append(l.groups, []int{i})
		}
	case c.group == yes:
		l.groups = l.together(order)
	default:
		l.groups = [][]int{order}
	}
	for _, columns := range l.groups {
		l.stepped = append(l.stepped, l.orderedLeaves(e, columns))
		l.most = append(l.most, mostCandidates(e.Dims, columns))
	}
	return l
}

// mostCandidates of a group: for one choice alone as many as it has values. With
// many more the best of all values always wins, whatever the densities say of
// the others; many such groups then give one point again and again, and none
// learns which of them was wrong.
func mostCandidates(dims []box.Dim, columns []int) int {
	if len(columns) == 1 && dims[columns[0]].Kind == box.Choice {
		return max(1, dims[columns[0]].Count)
	}
	return math.MaxInt
}

// maxStepped bounds what the comparison of neighbours costs.
const maxStepped = 32

// branches says whether other columns depend on this one.
func (l *tpeLayout) branches(column int) bool {
	return slices.ContainsFunc(l.parents, func(p tpeParent) bool { return p.column == column })
}

func (l *tpeLayout) orderedLeaves(e *history.Encoding, columns []int) (out []int) {
	for _, c := range columns {
		if e.Dims[c].Kind == box.Ordered && len(out) < maxStepped && !l.branches(c) {
			out = append(out, c)
		}
	}
	return out
}

// mostlyChoices says whether half of the dimensions or more have no order.
func mostlyChoices(dims []box.Dim) bool {
	n := 0
	for _, d := range dims {
		if d.Kind == box.Choice {
			n++
		}
	}
	return 2*n >= len(dims)
}

func newTPEParent(e *history.Encoding, i int) tpeParent {
	at, ok := e.Space.At(i).When()
	if !ok {
		return tpeParent{column: -1}
	}
	p := tpeParent{column: at}
	parent := e.Space.At(at)
	if count, _ := parent.Count(); e.Dims[at].Kind != box.Continuous {
		for k := range count {
			p.in = append(p.in, e.Space.At(i).ActiveFor(parent.At(k)))
		}
	}
	return p
}

// order puts each column after its parent, and else keeps their order.
func (l *tpeLayout) order() []int {
	out := make([]int, 0, len(l.parents))
	done := make([]bool, len(l.parents))
	for len(out) < len(l.parents) {
		for i, p := range l.parents {
			if !done[i] && (p.column < 0 || done[p.column]) {
				done[i] = true
				out = append(out, i)
			}
		}
	}
	return out
}

// together groups columns that are active under the same condition.
func (l *tpeLayout) together(order []int) (groups [][]int) {
	var keys []string
	for _, i := range order {
		key := fmt.Sprint(l.parents[i].column, l.parents[i].in)
		if l.parents[i].column >= 0 && l.parents[i].in == nil {
			key = fmt.Sprint("alone ", i)
		}
		g := slices.Index(keys, key)
		if g < 0 {
			g = len(keys)
			keys, groups = append(keys, key), append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// active says whether a column is active in a row whose earlier columns are
// settled.
func (l *tpeLayout) active(e *history.Encoding, column int, x []float64) bool {
	p := l.parents[column]
	if p.column < 0 {
		return true
	}
	v := x[p.column]
	switch {
	case math.IsNaN(v):
		return false
	case p.in == nil:
		return e.Space.At(column).ActiveFor(e.Space.At(p.column).Decode(v))
	case e.Dims[p.column].Kind == box.Choice:
		return p.in[int(v)]
	}
	return p.in[e.Dims[p.column].Nearest(v)]
}

// conditional says whether a group may be without any active column.
func (l *tpeLayout) conditional(columns []int) bool {
	for _, i := range columns {
		if l.parents[i].column < 0 {
			return false
		}
	}
	return true
}

// belongs says whether an observation says anything on a group.
func belongs(group []int, x []float64) bool {
	for _, i := range group {
		if !math.IsNaN(x[i]) {
			return true
		}
	}
	return false
}
