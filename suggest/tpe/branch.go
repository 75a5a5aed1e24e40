package tpe

import (
	"cmp"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// tpeBranches are the branches of a conditional space: the combinations of
// values of the columns that others depend on.
type tpeBranches struct {
	columns []int // that others depend on, each after its parent
	radix   []int // how many values each has, and one for not active
	// fixed has for each branch the values of columns; NaN where one is not
	// active. Empty when there are too many branches.
	fixed [][]float64
	at    map[int]int // of the code of a branch, its position
}

func newTPEBranches(e *history.Encoding, l *tpeLayout) tpeBranches {
	var b tpeBranches
	size := 1
	for _, c := range l.order() {
		if !l.branches(c) {
			continue
		}
		values := len(e.Dims[c].Levels)
		if e.Dims[c].Kind == box.Choice {
			values = e.Dims[c].Count
		}
		if size *= values + 1; values == 0 || size > tpeBranchesMost*tpeBranchesMost {
			return tpeBranches{}
		}
		b.columns, b.radix = append(b.columns, c), append(b.radix, values+1)
	}
	if len(b.columns) == 0 {
		return b
	}
	b.at = map[int]int{}
	row := slices.Repeat([]float64{math.NaN()}, len(e.Dims))
	if b.enumerate(e, l, row, 0); len(b.fixed) > tpeBranchesMost {
		return tpeBranches{}
	}
	return b
}

// enumerate adds the branches that go on from the first n columns of a row.
func (b *tpeBranches) enumerate(e *history.Encoding, l *tpeLayout, row []float64, n int) {
	if n == len(b.columns) {
		b.at[b.code(e, row)] = len(b.fixed)
		b.fixed = append(b.fixed, slices.Clone(row))
		return
	}
	c := b.columns[n]
	if !l.active(e, c, row) {
		b.enumerate(e, l, row, n+1)
		return
	}
	for k := range b.radix[n] - 1 {
		row[c] = float64(k)
		if e.Dims[c].Kind != box.Choice {
			row[c] = e.Dims[c].Levels[k]
		}
		b.enumerate(e, l, row, n+1)
	}
	row[c] = math.NaN()
}

// code tells the branches apart.
func (b *tpeBranches) code(e *history.Encoding, row []float64) int {
	code := 0
	for i, c := range b.columns {
		digit := 0
		switch v := row[c]; {
		case math.IsNaN(v):
		case e.Dims[c].Kind == box.Choice:
			digit = 1 + int(v)
		default:
			digit = 1 + e.Dims[c].Nearest(v)
		}
		code = code*b.radix[i] + digit
	}
	return code
}

// branchRecord is how a branch does.
type branchRecord struct {
	trials int          // of any state
	best   *history.Row // nil: none was measured
}

// race gives the branch to visit, by successive halving: each has
// tpeBranchFirst trials, the better half of them twice as many, and so on, until
// two are left, which go on. Branches are compared by their best trial.
func (b *tpeBranches) race(e *history.Encoding, h history.History, pended []tpeItem) []float64 {
	all := make([]branchRecord, len(b.fixed))
	note := func(x []float64) *branchRecord {
		if i, ok := b.at[b.code(e, x)]; ok {
			all[i].trials++
			return &all[i]
		}
		return &branchRecord{}
	}
	for _, o := range h.Measured {
		if s := note(o.X); s.best == nil || better(o, s.best) < 0 {
			s.best = o
		}
	}
	for _, list := range [][]*history.Row{h.Failed, h.Running} {
		for _, o := range list {
			note(o.X)
		}
	}
	for _, item := range pended {
		note(item.x)
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := all[i].best, all[j].best
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return 1
		case b == nil:
			return -1
		}
		return better(a, b)
	})
	for alive, room := len(order), tpeBranchFirst; ; alive, room = max(2, (alive+1)/2), 2*room {
		racing := order[:min(alive, len(order))]
		least := slices.MinFunc(racing, func(i, j int) int { return cmp.Compare(all[i].trials, all[j].trials) })
		if all[least].trials < room {
			return b.fixed[least]
		}
	}
}

// visit fixes, for each tpeVisit-th trial, the columns that others depend on:
// else a branch whose first trials were poor may never be tried again, whatever
// its best point is worth. Every other time it is the branch that a race
// between them says, else one that is drawn from the prior.
func (m *tpeModel) visit(number int, stream *rng.Stream) {
	m.fixed = m.fixed[:0]
	for range m.Dims {
		m.fixed = append(m.fixed, math.NaN())
	}
	if number%tpeVisit != tpeVisit-1 {
		return
	}
	if len(m.leaves.fixed) > 1 && number/tpeVisit%tpePrior != tpePrior-1 {
		copy(m.fixed, m.leaves.race(m.Encoding, m.history, m.pended))
	} else {
		for g, columns := range m.layout.groups {
			for _, c := range columns {
				if m.layout.branches(c) && m.layout.active(m.Encoding, c, m.fixed) {
					m.fixed[c] = m.criteria[g][0].good.density.Draw(-1, c, stream)
				}
			}
		}
	}
	m.used = m.branch()
}

// branch has the criteria of the trials whose fixed columns have these values,
// so that a branch is judged by what is good within it: among all trials its
// first ones may all be bad. Where it has too few, those of all.
func (m *tpeModel) branch() [][]*tpeCriterion {
	inside := func(x []float64) bool {
		for c, v := range m.fixed {
			if !math.IsNaN(v) && x[c] != v {
				return false
			}
		}
		return true
	}
	h := where(m.history, inside)
	if len(h.Measured)+len(h.Warm) < tpeBranchLeast || len(h.Measured) == len(m.history.Measured) {
		return m.criteria
	}
	key := history.RowKey(m.fixed)
	criteria, ok := m.branches[key]
	if !ok {
		if len(m.branches) >= tpeBranchesMost {
			clear(m.branches)
		}
		criteria = make([][]*tpeCriterion, len(m.layout.groups))
		m.branches[key] = criteria
	}
	m.learnInto(criteria, h, m.constraints)
	for _, item := range m.pended {
		if inside(item.x) {
			m.pendInto(criteria, item)
		}
	}
	return criteria
}
