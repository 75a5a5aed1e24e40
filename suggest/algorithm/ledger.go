package algorithm

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/vernier-ml/vernier/suggest"
)

// ledger reads studies for algorithms that replay what happened, trial by
// trial. A study that is the last one with a few more results or trials costs
// little: one comparison for each trial. It is not safe for use from several
// goroutines at once.
type ledger struct {
	*encoding
	objectives  []suggest.Objective
	constraints []suggest.Constraint
	entries     []entry // in order of trial number
	warm        []suggest.Trial
	seed        uint64
	size        uint64
	finite      bool
	known       map[string]struct{} // keys of the points
}

// entry is what a ledger knows of a trial.
type entry struct {
	identity
	plain bool // one value, no constraint, and a point
	trial *suggest.Trial

	result *result
}

// identity is what tells a trial from another one, in most cases, without a look
// at more memory than needed: there may be many thousands.
type identity struct {
	number int
	state  suggest.State
	point  *suggest.Value // where the point lies in memory
	meta   unsafe.Pointer // the same
	value  uint64         // bits of the first value
	length [3]int32       // of values, constraints and point
}

// address is where a map lies in memory: what reflect.Value.UnsafePointer gives,
// at a tenth of its cost.
func address(m suggest.Meta) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&m)) }

func identify(t *suggest.Trial) identity {
	i := identity{
		number: t.Number, state: t.State, meta: address(t.Meta),
		length: [3]int32{int32(len(t.Values)), int32(len(t.Constraints)), int32(len(t.Point))},
	}
	if len(t.Values) > 0 {
		i.value = math.Float64bits(t.Values[0])
	}
	if len(t.Point) > 0 {
		i.point = &t.Point[0]
	}
	return i
}

// result is a trial as replays see it.
type result struct {
	number int
	point  suggest.Point
	meta   suggest.Meta
	// x is the row of the point; nil when it lies outside of the space.
	x []float64
	// class is the first thing that trials are ranked by.
	class class
	// losses of a measured trial; nil otherwise.
	losses []float64
	// violation is the sum of violated constraints.
	violation float64
}

// class of a trial; smaller is better among those that have ended.
type class int

const (
	sound      class = iota // measured, and all constraints hold
	cut                     // the same, but stopped early
	infeasible              // measured, and a constraint does not hold
	broken                  // ended without a usable value
	open                    // pending or running
	void                    // says nothing: killed, or outside of the space
)

// ended says whether there is something to learn from the trial.
func (r *result) ended() bool { return r.class < open }

// better orders results that have ended, best first, by the main loss; a tie is
// 0. Constraints come before losses (Deb, "An efficient constraint handling
// method for genetic algorithms", 2000).
func (r *result) better(other *result) int {
	if c := cmp.Compare(r.class, other.class); c != 0 {
		return c
	}
	if r.class == infeasible {
		if c := cmp.Compare(r.violation, other.violation); c != 0 {
			return c
		}
	}
	if r.losses == nil {
		return 0
	}
	return cmp.Compare(r.losses[0], other.losses[0])
}

func newLedger(space suggest.Space) *ledger {
	l := &ledger{encoding: newEncoding(space), known: map[string]struct{}{}}
	l.size, l.finite = space.Size()
	return l
}

// read brings the ledger up to the study. changed are the positions of the
// entries that are new or have another outcome, ascending; again is true when
// something else changed, so that a replay has to begin anew.
func (l *ledger) read(s suggest.Study, seed uint64) (changed []int, again bool) {
	if seed != l.seed || !sameDirections(l.objectives, s.Objectives) || !sameBounds(l.constraints, s.Constraints) || !sameTrials(l.warm, s.Warm) {
		l.entries, again = nil, true
		l.seed, l.objectives, l.constraints = seed, slices.Clone(s.Objectives), slices.Clone(s.Constraints)
		l.warm = cloneTrials(s.Warm)
	}
	trials := inOrder(s.Trials)
	if len(trials) < len(l.entries) {
		l.entries, again = l.entries[:len(trials)], true
	}
	for i := range trials {
		t := &trials[i]
		if i == len(l.entries) {
			l.entries = append(l.entries, l.enter(t))
			changed = append(changed, i)
			continue
		}
		e := &l.entries[i]
		if e.same(t) {
			continue
		}
		if e.number != t.Number || !samePoint(e.result.point, t.Point) || !sameMeta(e.result.meta, t.Meta) || e.result.ended() {
			again = true
		}
		*e = l.enter(t)
		changed = append(changed, i)
	}
	if again {
		l.forget()
	}
	return changed, again
}

// forget rebuilds what is not kept for each entry.
func (l *ledger) forget() {
	clear(l.known)
	for _, e := range l.entries {
		l.note(e.result)
	}
}

func (l *ledger) note(r *result) {
	if r.x == nil {
		return
	}
	if key, ok := l.space.Key(r.point); ok {
		l.known[key] = struct{}{}
	}
}

// next is the number of the next trial.
func (l *ledger) next() int {
	if len(l.entries) == 0 {
		return 0
	}
	return max(0, l.entries[len(l.entries)-1].number+1)
}

// tried are the points so far. What is added to it must be removed from known
// before the ledger is read again.
func (l *ledger) tried() *tried {
	return &tried{space: l.space, finite: l.finite, size: l.size, keys: l.known}
}

// remove takes the proposals' points out of known: they are trials only when
// the study says so.
func (l *ledger) remove(proposals []suggest.Proposal) {
	for _, p := range proposals {
		if key, ok := l.space.Key(p.Point); ok {
			delete(l.known, key)
		}
	}
}

func (l *ledger) enter(t *suggest.Trial) entry {
	kept := *t
	kept.Values, kept.Constraints = slices.Clone(t.Values), slices.Clone(t.Constraints)
	e := entry{identity: identify(t), plain: len(t.Values) == 1 && len(t.Constraints) == 0 && len(t.Point) > 0, trial: &kept, result: l.result(&kept)}
	l.note(e.result)
	return e
}

// same says whether the trial is the one that was entered. Points and Meta are
// never modified in place, so that the same memory has the same content.
func (e *entry) same(t *suggest.Trial) bool {
	if e.plain && t.Number == e.number && t.State == e.state && len(t.Values) == 1 && len(t.Point) > 0 && len(t.Constraints) == 0 &&
		&t.Point[0] == e.point && math.Float64bits(t.Values[0]) == e.value && address(t.Meta) == e.meta {
		return true
	}
	now := identify(t)
	if now.number != e.number || now.state != e.state || !sameFloats(t.Values, e.trial.Values) || !sameFloats(t.Constraints, e.trial.Constraints) {
		return false
	}
	if (now.point != e.point || now.length != e.length) && !e.trial.Point.Equal(t.Point) || now.meta != e.meta && !sameMeta(e.trial.Meta, t.Meta) {
		return false
	}
	e.identity = now
	return true
}

func (l *ledger) result(t *suggest.Trial) *result {
	r := &result{number: t.Number, point: t.Point, meta: t.Meta, class: void}
	if !l.space.Contains(t.Point) {
		return r
	}
	r.x = l.row(t.Point)
	switch {
	case t.State == suggest.Killed:
		return r
	case !t.State.Finished():
		r.class = open
		return r
	}
	r.class = broken
	if t.State != suggest.Succeeded && t.State != suggest.Pruned {
		return r
	}
	if r.losses = lossesOf(l.objectives, t.Values); r.losses == nil {
		return r
	}
	_, r.violation = violationsOf(l.constraints, t.Constraints)
	switch {
	case r.violation > 0:
		r.class = infeasible
	case t.State == suggest.Pruned:
		r.class = cut
	default:
		r.class = sound
	}
	return r
}

func sameTrials(a, b []suggest.Trial) bool {
	return slices.EqualFunc(a, b, func(x, y suggest.Trial) bool { return sameTrial(&x, &y) })
}

func cloneTrials(trials []suggest.Trial) []suggest.Trial {
	out := slices.Clone(trials)
	for i := range out {
		out[i].Values, out[i].Constraints = slices.Clone(out[i].Values), slices.Clone(out[i].Constraints)
	}
	return out
}
