package fidelity

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
)

// The metadata of trials in multi-fidelity algorithms. Package stop knows the
// parent as well.
const (
	metaBracket = "bracket" // number of the bracket, from 0
	metaRung    = "rung"    // number of the rung in the bracket, from 0
)

// rungBook is the bookkeeping of multi-fidelity algorithms: which trial stands
// at which rung of which bracket, and how it did there. It is read from the
// trials' metadata, and what is started while a question is answered is added
// to it, so that the rest of the batch counts it as running.
//
//	book := readRungs(history)
//	best := book.bracket(0).rung(1).ranked()  // finished with a value, best first
//	proposal := book.promote(best[0], 27)     // to the next rung, with resource 27
//	proposal = book.start(1, 0, point, 3)     // a new point, in bracket 1
//
// Killed trials do not count: their rung has room again, and the trial that
// they continued may be promoted once more. Trials without metadata of this
// kind, like a user's own, stand at no rung, but their points are known as base
// points.
type rungBook struct {
	brackets []*bracketBook // by number
	next     int            // number of the next trial
	count    int            // trials in all, of any state
	base     []baseTrial
	entries  []*rungEntry // all, by trial number
	plain    []*suggest.Trial
}

// bracketBook is one bracket.
type bracketBook struct {
	number int
	rungs  []*rungLevel
}

// rungLevel is one rung of a bracket.
type rungLevel struct {
	entries []*rungEntry
}

// rungEntry is a trial at a rung.
type rungEntry struct {
	bracket, rung int
	trial         *suggest.Trial
	// rank: smaller is better. Infinite violation: ended without a usable value,
	// which includes those that a rule stopped.
	violation, loss float64
	promoted        bool
	base            int        // position in rungBook.base of the trial that first tried the point
	sibling         *rungEntry // another trial of the same point; nil: none more
}

// baseTrial is a trial that brought a new point; what continues it shares its
// place.
type baseTrial struct {
	trial *suggest.Trial
	last  *rungEntry // of its entries, which are linked as siblings
}

// readRungs reads the trials of a study.
func readRungs(h history.History) *rungBook {
	b := &rungBook{next: h.Next, count: len(h.Rows), base: make([]baseTrial, 0, len(h.Rows)), entries: make([]*rungEntry, 0, len(h.Rows))}
	room := make([]rungEntry, len(h.Rows))
	for i, r := range h.Rows {
		b.add(r, &room[i])
	}
	return b
}

// add reads a trial, into e if it stands at a rung.
func (b *rungBook) add(r *history.Row, e *rungEntry) {
	bracket, okBracket := metaNumber(r.Meta, metaBracket)
	rung, okRung := metaNumber(r.Meta, metaRung)
	number, hasParent := metaNumber(r.Meta, suggest.MetaParent)
	var parent *rungEntry
	if hasParent {
		parent = b.entry(number)
		hasParent = parent != nil
	}
	if !hasParent {
		b.base = append(b.base, baseTrial{trial: r.Trial})
	}
	if !okBracket || !okRung || rung > maxRung || r.Class == history.Void {
		return
	}
	*e = rungEntry{bracket: bracket, rung: rung, trial: r.Trial, base: len(b.base) - 1, violation: math.Inf(1), loss: math.Inf(1)}
	if hasParent {
		e.base, parent.promoted = parent.base, true
	}
	if r.State == suggest.Succeeded && r.Losses != nil {
		e.loss, e.violation = r.Losses[0], math.Min(r.Violation, math.MaxFloat64)
	}
	b.insert(e)
}

// maxRung bounds what metadata may claim: no schedule halves more often.
const maxRung = 64

func (b *rungBook) insert(e *rungEntry) {
	b.entries = append(b.entries, e)
	e.sibling, b.base[e.base].last = b.base[e.base].last, e
	r := b.bracket(e.bracket).rung(e.rung)
	r.entries = append(r.entries, e)
}

// entry of the trial with the number; nil when it stands at no rung.
func (b *rungBook) entry(number int) *rungEntry {
	i, found := slices.BinarySearchFunc(b.entries, number, func(e *rungEntry, n int) int { return cmp.Compare(e.trial.Number, n) })
	if !found {
		return nil
	}
	return b.entries[i]
}

func metaNumber(m suggest.Meta, key string) (n int, ok bool) {
	text, ok := m[key]
	if !ok {
		return -1, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0
}

// finished says whether the trial has ended.
func (e *rungEntry) finished() bool { return e.trial.State.Finished() }

// usable says whether it ended with a value.
func (e *rungEntry) usable() bool { return e.finished() && !math.IsInf(e.violation, 1) }

// compare says which entry did better: feasible ones by their loss, others by
// their violation; equal ones by their number.
func (e *rungEntry) compare(o *rungEntry) int {
	return cmp.Or(cmp.Compare(e.violation, o.violation), cmp.Compare(e.loss, o.loss), cmp.Compare(e.trial.Number, o.trial.Number))
}

// bracket finds or makes the bracket with the number.
func (b *rungBook) bracket(number int) *bracketBook {
	i, found := slices.BinarySearchFunc(b.brackets, number, func(r *bracketBook, n int) int { return cmp.Compare(r.number, n) })
	if !found {
		b.brackets = slices.Insert(b.brackets, i, &bracketBook{number: number})
	}
	return b.brackets[i]
}

// rung finds or makes the rung with the number.
func (r *bracketBook) rung(number int) *rungLevel {
	for len(r.rungs) <= number {
		r.rungs = append(r.rungs, &rungLevel{})
	}
	return r.rungs[number]
}

// finished is how many entries have ended, with or without a value.
func (r *rungLevel) finished() int { return r.count((*rungEntry).finished) }

// usable is how many entries ended with a value.
func (r *rungLevel) usable() int { return r.count((*rungEntry).usable) }

func (r *rungLevel) count(which func(*rungEntry) bool) (n int) {
	for _, e := range r.entries {
		if which(e) {
			n++
		}
	}
	return n
}

// ranked are the entries that ended with a value, the best first.
func (r *rungLevel) ranked() []*rungEntry {
	var out []*rungEntry
	for _, e := range r.entries {
		if e.usable() {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, (*rungEntry).compare)
	return out
}

// candidate is the best entry that was not promoted yet, and its place in the
// ranking of all, from 0; nil when there is none.
func (r *rungLevel) candidate() (best *rungEntry, place int) {
	for place, e := range r.ranked() {
		if !e.promoted {
			return e, place
		}
	}
	return nil, 0
}

// start gives the proposal of a new point, and notes it as running.
func (b *rungBook) start(bracket, rung int, p suggest.Point, resource float64) suggest.Proposal {
	meta := suggest.Meta{metaBracket: strconv.Itoa(bracket), metaRung: strconv.Itoa(rung)}
	b.base = append(b.base, baseTrial{trial: &suggest.Trial{Point: p}})
	return b.proposal(&rungEntry{bracket: bracket, rung: rung, base: len(b.base) - 1}, p, meta, resource)
}

// remember puts what the sampler wants back into the proposal that was started
// last.
func (b *rungBook) remember(p suggest.Proposal, meta suggest.Meta) {
	maps.Copy(p.Meta, meta)
	b.base[len(b.base)-1].trial.Meta = p.Meta
}

// promote gives the proposal that takes a point to the next rung, and notes it
// as running.
func (b *rungBook) promote(e *rungEntry, p suggest.Point, resource float64) suggest.Proposal {
	meta := suggest.Meta{
		metaBracket: strconv.Itoa(e.bracket), metaRung: strconv.Itoa(e.rung + 1), suggest.MetaParent: strconv.Itoa(e.trial.Number),
	}
	e.promoted = true
	return b.proposal(&rungEntry{bracket: e.bracket, rung: e.rung + 1, base: e.base}, p, meta, resource)
}

func (b *rungBook) proposal(e *rungEntry, p suggest.Point, meta suggest.Meta, resource float64) suggest.Proposal {
	e.trial = &suggest.Trial{Number: b.next, Point: p, Meta: meta, Resource: resource}
	e.violation, e.loss = math.Inf(1), math.Inf(1)
	b.next++
	b.count++
	b.insert(e)
	return suggest.Proposal{Point: slices.Clone(p), Meta: meta, Resource: resource}
}

// points are the base points as trials that have not ended, numbered without
// gaps: for samplers that do not learn.
func (b *rungBook) points() []*suggest.Trial {
	if b.plain == nil {
		b.plain = make([]*suggest.Trial, 0, len(b.base)+1)
	}
	for i := len(b.plain); i < len(b.base); i++ {
		b.plain = append(b.plain, &suggest.Trial{Number: i, Point: b.base[i].trial.Point})
	}
	return b.plain
}

// waiting says whether a trial is running whose result may let something start.
func (b *rungBook) waiting() bool {
	for _, bracket := range b.brackets {
		for _, r := range bracket.rungs {
			if r.finished() < len(r.entries) {
				return true
			}
		}
	}
	return false
}
