package algorithm

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
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
	warm        []*suggest.Trial
	seed        uint64
	size        uint64
	finite      bool
	known       map[string]struct{} // keys of the points
}

// entry is what a ledger knows of a trial.
type entry struct {
	number int
	trial  *suggest.Trial
	result *result
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
	if seed != l.seed || !sameDirections(l.objectives, s.Objectives) || !sameBounds(l.constraints, s.Constraints) || !slices.EqualFunc(l.warm, s.Warm, (*suggest.Trial).Equal) {
		l.entries, again = nil, true
		l.seed, l.objectives, l.constraints = seed, slices.Clone(s.Objectives), slices.Clone(s.Constraints)
		l.warm = slices.Clone(s.Warm)
	}
	trials := s.Trials
	if len(trials) < len(l.entries) {
		l.entries, again = l.entries[:len(trials)], true
	}
	for i, t := range trials {
		switch {
		case i == len(l.entries):
			l.entries = append(l.entries, entry{})
		case l.entries[i].trial == t:
			continue
		default:
			old := l.entries[i].result
			again = again || old.number != t.Number || !old.point.Equal(t.Point) || !maps.Equal(old.meta, t.Meta) || old.ended()
		}
		l.entries[i] = l.enter(t)
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

// fill makes proposals with points that were not tried. They are trials only
// when the study says so, and are not known after it, however it ends.
func (l *ledger) fill(ctx context.Context, n int, key rng.Key, turns func(number int) turn) ([]suggest.Proposal, error) {
	t := &tried{space: l.space, finite: l.finite, size: l.size, keys: l.known, allowed: l.trials}
	defer t.undo()
	return t.fill(ctx, l.next(), n, key, turns)
}

// trials are the entries' trials, in order of number.
func (l *ledger) trials() []*suggest.Trial {
	out := make([]*suggest.Trial, len(l.entries))
	for i := range l.entries {
		out[i] = l.entries[i].trial
	}
	return out
}

func (l *ledger) enter(t *suggest.Trial) entry {
	e := entry{number: t.Number, trial: t, result: l.result(t)}
	l.note(e.result)
	return e
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

// sources are the measured trials of other studies, by study, in the order in
// which these first occur. Values of different studies do not compare.
func (l *ledger) sources() [][]*result {
	var out [][]*result
	at := map[string]int{}
	for i := range l.warm {
		r := l.result(l.warm[i])
		if r.losses == nil {
			continue
		}
		name := l.warm[i].Meta["study"]
		k, ok := at[name]
		if !ok {
			k = len(out)
			at[name], out = k, append(out, nil)
		}
		out[k] = append(out[k], r)
	}
	return out
}

// elite is at most n points of other studies, and not more than can be drawn
// one after another, the best of each first.
func (l *ledger) elite(n int) []suggest.Point {
	n = min(n, attempts/4)
	var ranked [][]survivor
	for _, source := range l.sources() {
		ranked = append(ranked, rankMembers(source))
	}
	var out []suggest.Point
	for k := 0; len(out) < n; k++ {
		before := len(out)
		for _, source := range ranked {
			if k < len(source) && len(out) < n {
				out = append(out, source[k].point)
			}
		}
		if len(out) == before {
			break
		}
	}
	return out
}
