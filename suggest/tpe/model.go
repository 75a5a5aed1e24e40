package tpe

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/numeric/parzen"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// tpeModel has the densities of good and bad trials. What it has learnt is
// updated by what changed since the last study; the result is that of learning
// anew.
type tpeModel struct {
	*history.Encoding
	layout tpeLayout
	config Config
	// criteria for each group: the first is the objective, the others are the
	// constraints.
	criteria [][]*tpeCriterion
	// What criteria were made of, and the points proposed since.
	history     history.History
	constraints int
	pended      []tpeItem
	// branches have the same of the trials of one branch, and used is what the
	// present trial asks: criteria or one of these.
	leaves   tpeBranches
	branches map[string][][]*tpeCriterion
	used     [][]*tpeCriterion
	draft    tpeDraft
	// explores says that the wide density is to be asked.
	explores bool
	// spare are the buffers of the splits of all trials and of a group's.
	spare [2][]tpeItem
	// fixed has for each column the value that all candidates have; NaN: none.
	fixed []float64
}

// tpeCriterion has the densities of good and of bad trials, over the columns of
// a group.
type tpeCriterion struct {
	good, bad, wide tpeSide // wide is bad with wider kernels, of the objective alone
	share           float64
}

// tpeDraft holds candidates while they are compared.
type tpeDraft struct {
	rows      [][]float64
	good, bad []float64 // log densities
	scores    []float64
	order     []int // best first
}

func newTPEModel(e *history.Encoding, config Config) *tpeModel {
	m := &tpeModel{Encoding: e, layout: newTPELayout(e, config), config: config}
	m.criteria = make([][]*tpeCriterion, len(m.layout.groups))
	m.leaves, m.branches = newTPEBranches(e, &m.layout), map[string][][]*tpeCriterion{}
	return m
}

func (m *tpeModel) newCriterion(columns []int) *tpeCriterion {
	good, bad := m.config.kernel, m.config.kernel
	bad.Empirical = true
	wide := bad
	wide.Narrowest = m.config.wide
	return &tpeCriterion{
		good: tpeSide{density: parzen.New(m.Dims, columns, good)},
		bad:  tpeSide{density: parzen.New(m.Dims, columns, bad)},
		wide: tpeSide{density: parzen.New(m.Dims, columns, wide)},
	}
}

// learn takes over a history.
func (m *tpeModel) learn(h history.History, constraints int) {
	m.history, m.constraints, m.pended = h, constraints, m.pended[:0]
	m.learnInto(m.criteria, h, constraints)
}

// learnInto makes criteria those of a history.
func (m *tpeModel) learnInto(criteria [][]*tpeCriterion, h history.History, constraints int) {
	var whole []tpeSplit
	for g, columns := range m.layout.groups {
		splits := whole
		if m.layout.conditional(columns) {
			splits = m.splits(restricted(h, columns), constraints, &m.spare[1])
		} else if whole == nil {
			whole = m.splits(h, constraints, &m.spare[0])
			splits = whole
		}
		for len(criteria[g]) < len(splits) {
			criteria[g] = append(criteria[g], m.newCriterion(columns))
		}
		criteria[g] = criteria[g][:len(splits)]
		for i, c := range criteria[g] {
			c.share = splits[i].share
			c.good.set(splits[i].good)
			c.bad.set(splits[i].bad)
			if i == 0 {
				c.wide.set(newest(splits[i].bad))
			}
		}
	}
}

// splits has one split for the objective, and one for each constraint as long as
// good trials violate any: after that the first split says it all, and the
// others would count the constraints twice. The first one's bad trials lie in
// the buffer until the next call.
func (m *tpeModel) splits(h history.History, constraints int, buffer *[]tpeItem) []tpeSplit {
	out := []tpeSplit{splitByValue(h, m.config.Gamma, *buffer)}
	*buffer = out[0].bad
	if feasible(h) >= goodCount(h, m.config.Gamma) {
		return out
	}
	for i := range constraints {
		out = append(out, splitByConstraint(h, i, m.config.Gamma))
	}
	return out
}

// newest are the items that the wide density has: enough for its kernels,
// whose number would make it slow, as hardly any of them is negligible.
func newest(bad []tpeItem) []tpeItem { return bad[max(0, len(bad)-tpeWideMost):] }

// restricted has the observations that say anything on a group of columns.
func restricted(h history.History, columns []int) history.History {
	return where(h, func(x []float64) bool { return belongs(columns, x) })
}

// where has the observations whose rows are wanted.
func where(h history.History, wanted func(x []float64) bool) history.History {
	some := func(all []*history.Row) (out []*history.Row) {
		for _, o := range all {
			if wanted(o.X) {
				out = append(out, o)
			}
		}
		return out
	}
	return history.History{Measured: some(h.Measured), Failed: some(h.Failed), Running: some(h.Running), Warm: some(h.Warm)}
}

// pend counts a point that was just proposed among the bad ones.
func (m *tpeModel) pend(number int, x []float64) {
	item := tpeItem{id: number, x: x}
	m.pended = append(m.pended, item)
	m.pendInto(m.criteria, item)
}

func (m *tpeModel) pendInto(criteria [][]*tpeCriterion, item tpeItem) {
	for g, columns := range m.layout.groups {
		if belongs(columns, item.x) {
			c := criteria[g][0]
			c.bad.insert(item)
			c.wide.set(newest(c.bad.items))
		}
	}
}

// propose gives a function that gives rows for the trial with the number, the
// most promising one first.
func (m *tpeModel) propose(number int, stream *rng.Stream) (next func() []float64) {
	m.explores = m.config.period > 0 && number%m.config.period == 0
	m.used = m.criteria
	m.visit(number, stream)
	if len(m.layout.groups) == 0 {
		return func() []float64 { return nil }
	}
	if len(m.layout.groups) == 1 {
		return m.ranked(stream)
	}
	count := m.config.Candidates
	return func() []float64 {
		x := make([]float64, len(m.Dims))
		for i := range x {
			x[i] = math.NaN()
		}
		for g, columns := range m.layout.groups {
			m.compare(g, min(count, m.layout.most[g]), x, stream)
			for _, c := range columns {
				x[c] = m.draft.rows[m.draft.order[0]][c]
			}
		}
		count = max(1, count/2) // the next one must differ
		return x
	}
}

// ranked goes through the candidates of the only group, and then through
// further draws.
func (m *tpeModel) ranked(stream *rng.Stream) func() []float64 {
	var left []int
	x := make([]float64, len(m.Dims))
	return func() []float64 {
		if len(left) == 0 {
			m.compare(0, m.config.Candidates, x, stream)
			left = m.draft.order
		}
		best := left[0]
		left = left[1:]
		return m.draft.rows[best]
	}
}

// compare draws candidates for a group of columns, which go on from the row
// base, and sorts them and the neighbours of the best one by acquisition.
func (m *tpeModel) compare(g, count int, base []float64, stream *rng.Stream) {
	d := &m.draft
	d.reserve(count, len(m.Dims))
	for _, row := range d.rows {
		copy(row, base)
		m.draw(g, m.used[g][0].good.density, row, stream)
	}
	m.score(g, 0)
	d.sort()
	if m.neighbours(g, d.rows[d.order[0]]) {
		m.score(g, count)
		d.sort()
	}
}

// neighbours adds to the candidates the rows that differ from the given one in
// one number, by 1, 2, 4, ... levels or by as many as there are up to either end:
// a candidate that is drawn hits the best of many levels rarely, above all one
// that is improbable.
func (m *tpeModel) neighbours(g int, row []float64) (any bool) {
	for _, c := range m.layout.stepped[g] {
		if math.IsNaN(row[c]) {
			continue
		}
		levels := m.Dims[c].Levels
		for next := range ladder(m.Dims[c].Nearest(row[c]), len(levels)) {
			m.draft.reserve(len(m.draft.rows)+1, len(row))
			added := m.draft.rows[len(m.draft.rows)-1]
			copy(added, row)
			added[c] = levels[next]
			any = true
		}
	}
	return any
}

// ladder goes from one of count levels in steps that double, down to the first
// and up to the last.
func ladder(at, count int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, end := range []int{0, count - 1} {
			for step := 1; at != end; step *= 2 {
				next := max(at-step, end)
				if end > at {
					next = min(at+step, end)
				}
				if !yield(next) {
					return
				}
				if next == end {
					break
				}
			}
		}
	}
}

// score fills in the acquisition of the candidates from the given one on.
func (m *tpeModel) score(g, from int) {
	d := &m.draft
	rows, good, bad := d.rows[from:], d.good[from:], d.bad[from:]
	clear(d.scores[from:])
	for k, c := range m.used[g] {
		c.good.density.LogDensities(rows, good)
		if k == 0 && m.explores {
			c.wide.density.LogDensities(rows, bad)
		} else {
			c.bad.density.LogDensities(rows, bad)
		}
		for i := range rows {
			d.scores[from+i] += c.acquisition(good[i], bad[i])
		}
	}
}

// draw fills the columns of a group from a component of a density.
func (m *tpeModel) draw(g int, from *parzen.Mixture, row []float64, stream *rng.Stream) {
	component := from.Pick(stream)
	for _, c := range m.layout.groups[g] {
		row[c] = math.NaN()
		if !m.layout.active(m.Encoding, c, row) {
			continue
		}
		if row[c] = m.fixed[c]; math.IsNaN(row[c]) {
			row[c] = from.Draw(component, c, stream)
		}
	}
}

// acquisition is the log of the relative density 1/(share + (1-share) bad/good)
// of c-TPE (equation 8), which for one criterion sorts as good/bad does.
func (c *tpeCriterion) acquisition(good, bad float64) float64 {
	if math.IsInf(good, -1) {
		return math.Inf(-1)
	}
	if len(c.bad.items) == 0 {
		return 0
	}
	ratio := bad - good + math.Log1p(-c.share) // log((1-share) bad/good)
	if ratio > 700 {
		return -ratio
	}
	return -math.Log(c.share + math.Exp(ratio))
}

// reserve makes the draft as long as count, and keeps what it has.
func (d *tpeDraft) reserve(count, dimensions int) {
	all := d.rows[:cap(d.rows)]
	for len(all) < count {
		all = append(all, make([]float64, dimensions))
		all = all[:cap(all)]
	}
	for i := range count {
		if all[i] == nil {
			all[i] = make([]float64, dimensions)
		}
	}
	d.rows = all[:count]
	d.good, d.bad = sized(d.good, count), sized(d.bad, count)
	d.scores = sized(d.scores, count)
}

func sized(s []float64, n int) []float64 { return slices.Grow(s, max(0, n-len(s)))[:n] }

// sort puts the candidates in order, best first.
func (d *tpeDraft) sort() {
	d.order = d.order[:0]
	for i := range d.rows {
		d.order = append(d.order, i)
	}
	slices.SortFunc(d.order, func(i, j int) int {
		if c := cmp.Compare(d.scores[j], d.scores[i]); c != 0 {
			return c
		}
		return i - j
	})
}
