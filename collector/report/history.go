package report

import (
	"math"
	"slices"

	"github.com/vernier-ml/vernier/collector"
)

// maxStairs bounds the records that a staircase has.
const maxStairs = 64

// History is what attempts that follow each other measured, in memory that grows
// neither with their number nor with that of their points. Its metrics are what
// collector.Observe says of all of them.
type History struct {
	order   []string
	metrics map[string]past
}

// Then returns the history of h's attempts and one newer attempt.
func (h History) Then(newer History) History {
	joined := History{order: slices.Clone(newer.order), metrics: map[string]past{}}
	for name, m := range newer.metrics {
		if older, known := h.metrics[name]; known {
			m = m.after(older)
		}
		joined.metrics[name] = m
	}
	for _, name := range h.order {
		older, known := h.metrics[name]
		if _, again := newer.metrics[name]; known && !again && len(joined.metrics) < maxMetrics {
			joined.metrics[name] = older
		}
		if _, kept := joined.metrics[name]; (kept || !known) && !slices.Contains(joined.order, name) {
			joined.order = append(joined.order, name)
		}
	}
	return joined
}

// Metrics are the metrics as a Summary has them.
func (h History) Metrics() (list []MetricSummary) {
	for _, name := range h.order {
		if m, known := h.metrics[name]; known {
			list = append(list, m.summary)
		}
	}
	return list
}

// Near is the number of metrics whose least or greatest value may not be exact:
// one improved more than maxStairs times in an attempt, and a newer one began
// anew in the midst of that.
func (h History) Near() (n int) {
	for _, m := range h.metrics {
		if m.near {
			n++
		}
	}
	return n
}

// past is a metric in a history.
type past struct {
	summary MetricSummary
	near    bool
	reach
}

// reach says what a newer attempt leaves of a metric, whatever step it begins at.
type reach struct {
	// lowest is the least step, NoStep if a point has none; stated is the least of
	// the others, and math.MaxInt64 without any.
	lowest, stated  int64
	least, greatest stairs
}

func newReach() reach {
	return reach{lowest: math.MaxInt64, stated: math.MaxInt64, greatest: stairs{up: true}}
}

// add counts a value at a step. Values without a step are void as soon as a
// newer attempt has any.
func (r *reach) add(step int64, v Value) {
	r.lowest = min(r.lowest, step)
	if step == collector.NoStep {
		return
	}
	r.stated = min(r.stated, step)
	if class(v) != notNumber {
		r.least.add(step, v)
		r.greatest.add(step, v)
	}
}

// after returns m with what counts of older attempts.
func (m past) after(older past) past {
	if m.lowest != collector.NoStep {
		s := &m.summary
		least, exactly := older.least.below(m.lowest)
		if len(least) > 0 && older.least.improves(least[len(least)-1].value, s.Min) {
			s.Min = least[len(least)-1].value
		}
		greatest, exactlyToo := older.greatest.below(m.lowest)
		if len(greatest) > 0 && older.greatest.improves(greatest[len(greatest)-1].value, s.Max) {
			s.Max = greatest[len(greatest)-1].value
		}
		s.Count += int64(max(len(least), len(greatest)))
		m.near = !exactly || !exactlyToo
	}
	m.least = older.least.then(m.least, m.stated)
	m.greatest = older.greatest.then(m.greatest, m.stated)
	m.stated = min(m.stated, older.stated)
	return m
}

// stairs is the least value, or the greatest, below any step: records in order
// of their steps, each better than those before it.
type stairs struct {
	up      bool // the greatest
	records []record
	// thinned: some records were left out, but neither the first nor the last one.
	// lost: a last one may be missing.
	thinned, lost bool
}

type record struct {
	step  int64
	value Value
}

func (s *stairs) improves(a, b Value) bool {
	if s.up {
		return ahead(a, b, a.Number > b.Number)
	}
	return ahead(a, b, a.Number < b.Number)
}

// search returns how many records are below a step.
func (s *stairs) search(step int64) int {
	n := len(s.records)
	if n == 0 || s.records[n-1].step < step { // as nearly always
		return n
	}
	i, _ := slices.BinarySearchFunc(s.records, step, func(r record, step int64) int {
		if r.step < step {
			return -1
		}
		return 1
	})
	return i
}

func (s *stairs) add(step int64, v Value) {
	from := s.search(step)
	to := from
	if from > 0 && !s.improves(v, s.records[from-1].value) {
		return
	}
	if from < len(s.records) && s.records[from].step == step && !s.improves(v, s.records[from].value) {
		return
	}
	for to < len(s.records) && !s.improves(s.records[to].value, v) {
		to++
	}
	s.records = slices.Replace(s.records, from, to, record{step, v})
	s.thin()
}

// thin leaves out records, where steps are densest, when there are too many. The
// first and the last one stay.
func (s *stairs) thin() {
	for len(s.records) > maxStairs {
		dense := 1
		for i := 2; i < len(s.records)-1; i++ {
			if s.gap(i) < s.gap(dense) {
				dense = i
			}
		}
		s.records, s.thinned = slices.Delete(s.records, dense, dense+1), true
	}
}

// gap is how many steps would have no record without that at i.
func (s *stairs) gap(i int) int64 { return s.records[i+1].step - s.records[i-1].step }

// below returns the records below a step. exactly: the last of them is the best
// value below the step.
func (s *stairs) below(step int64) (records []record, exactly bool) {
	n := s.search(step)
	return s.records[:n], n == 0 || !s.lost && (!s.thinned || n == len(s.records))
}

// then returns the stairs of s below a step, followed by those of a newer attempt
// whose least step it is.
func (s *stairs) then(newer stairs, step int64) stairs {
	before, exactly := s.below(step)
	joined := stairs{up: s.up, records: slices.Clone(before), thinned: s.thinned || newer.thinned, lost: !exactly || newer.lost}
	for _, r := range newer.records {
		if n := len(joined.records); n == 0 || joined.improves(r.value, joined.records[n-1].value) {
			joined.records = append(joined.records, r)
		}
	}
	joined.thin()
	return joined
}
