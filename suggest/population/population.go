// Package population has the algorithms that keep a population of trials: the
// genetic ones (NSGA-II, NSGA-III, regularized evolution) and population based
// training (PBT, PB2).
package population

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
)

// The Meta of a trial in a population. A trial of generation 0 has no parent:
// it starts training; any other one goes on from its parent's checkpoint.
const (
	memberMeta     = "member"
	generationMeta = "generation"
)

// noParent is the parent of a trial that starts training.
const noParent = -1

// outcome says what an interval's trial has come to.
type outcome int

const (
	training outcome = iota // pending or running
	scored                  // it has a finite value and may be continued
	stopped                 // pruned: ranked last, never continued
	diverged                // it ended with a value that is no finite number
	crashed                 // it ended without a value
	killed                  // from outside, which says nothing of its point
)

// interval is one trial of a population: a member trained for a generation.
type interval struct {
	number, member, generation, parent int

	point     suggest.Point
	outcome   outcome
	loss      float64 // +Inf when stopped
	violation float64
}

// compare orders by quality: feasible ones first, then by loss.
func (v *interval) compare(w *interval) int {
	return cmp.Or(cmp.Compare(v.violation, w.violation), cmp.Compare(v.loss, w.loss))
}

// ended says whether the interval has a place in a ranking.
func (v *interval) ended() bool { return v.outcome == scored || v.outcome == stopped }

// population is what the trials of a study say about the members.
type population struct {
	members  [][]*interval // of each member by generation, then by number
	byNumber map[int]*interval
}

// newPopulation reads the trials. Those that carry no readable Meta (a user's
// own, or initial ones) become members of generation 0 in the order of their
// numbers while there is room.
func newPopulation(size int, rows []*history.Row) *population {
	p := &population{members: make([][]*interval, size), byNumber: make(map[int]*interval, len(rows))}
	var strangers []*interval
	for _, r := range rows {
		if r.X == nil {
			continue
		}
		v := &interval{number: r.Number, point: r.Point}
		v.outcome, v.loss, v.violation = assess(r)
		if v.readMeta(r.Meta, size, len(rows)) {
			p.insert(v)
		} else if v.outcome == training || v.outcome == scored {
			strangers = append(strangers, v)
		}
	}
	p.sort()
	slices.SortFunc(strangers, func(v, w *interval) int { return cmp.Compare(v.number, w.number) })
	for member := 0; member < size && len(strangers) > 0; member++ {
		if len(p.members[member]) == 0 {
			strangers[0].member, strangers[0].parent = member, noParent
			p.insert(strangers[0])
			strangers = strangers[1:]
		}
	}
	return p
}

func (p *population) insert(v *interval) {
	p.members[v.member] = append(p.members[v.member], v)
	p.byNumber[v.number] = v
}

// sort must be called after what is inserted is not the newest of its member.
func (p *population) sort() {
	for _, m := range p.members {
		slices.SortFunc(m, func(v, w *interval) int {
			return cmp.Or(cmp.Compare(v.generation, w.generation), cmp.Compare(v.number, w.number))
		})
	}
}

// readMeta says whether the Meta could come from a proposal. There are never
// more generations than trials.
func (v *interval) readMeta(m suggest.Meta, size, trials int) bool {
	member, err1 := strconv.Atoi(m[memberMeta])
	generation, err2 := strconv.Atoi(m[generationMeta])
	if err1 != nil || err2 != nil || member < 0 || member >= size || generation < 0 || generation > trials {
		return false
	}
	v.member, v.generation, v.parent = member, generation, noParent
	if parent, err := strconv.Atoi(m[suggest.MetaParent]); err == nil && parent >= 0 && generation > 0 {
		v.parent = parent
	}
	return true
}

func (v *interval) meta() suggest.Meta {
	m := suggest.Meta{memberMeta: strconv.Itoa(v.member), generationMeta: strconv.Itoa(v.generation)}
	if v.parent != noParent {
		m[suggest.MetaParent] = strconv.Itoa(v.parent)
	}
	return m
}

// assess condenses a trial's result by the first objective and the constraints.
func assess(r *history.Row) (result outcome, loss, violation float64) {
	switch {
	case r.Class == history.Running:
		return training, math.Inf(1), 0
	case r.State == suggest.Killed:
		return killed, math.Inf(1), 0
	case r.State == suggest.Pruned:
		return stopped, math.Inf(1), math.Inf(1)
	case r.Losses != nil:
		return scored, r.Losses[0], r.Violation
	case r.State == suggest.Succeeded && len(r.Values) > 0:
		return diverged, math.Inf(1), 0
	}
	return crashed, math.Inf(1), 0
}

// latest is the member's last interval that has ended, of a generation of at
// most upTo; nil when there is none.
func (p *population) latest(member, upTo int) *interval {
	for _, v := range slices.Backward(p.members[member]) {
		if v.generation <= upTo && v.ended() {
			return v
		}
	}
	return nil
}

// memberFront is where a member stands: in its highest generation.
type memberFront struct {
	generation int
	busy       bool
	ended      *interval   // nil when it is busy, or has only failed
	failures   []*interval // the newest first
}

// front of a member; generation 0 without any interval when it has not begun.
func (p *population) front(member int) memberFront {
	all := p.members[member]
	if len(all) == 0 {
		return memberFront{}
	}
	f := memberFront{generation: all[len(all)-1].generation}
	for _, v := range slices.Backward(all) {
		switch {
		case v.generation < f.generation:
			return f
		case v.ended():
			f.ended = v
		case v.outcome == training:
			f.busy = true
		default:
			f.failures = append(f.failures, v)
		}
	}
	return f
}

// reached counts the members that have ended the generation.
func (p *population) reached(generation int) int {
	n := 0
	for member := range p.members {
		if v := p.latest(member, math.MaxInt); v != nil && v.generation >= generation {
			n++
		}
	}
	return n
}

// rankPlace is a member's place in the ranking of a generation.
type rankPlace struct {
	better, ranked int  // how many are better, among how many
	bottom         bool // it is among the worst
	// donors are the best of the generation: who the bottom takes over from.
	donors []*interval
}

// rank compares an interval that has ended with all other members: with their
// result of the same generation, or their latest one where that has not ended
// yet. Among equals the lower member stands higher, so that some explore also
// when all are equal.
func (p *population) rank(v *interval, quantile float64) rankPlace {
	all := []*interval{v}
	for member := range p.members {
		if w := p.latest(member, v.generation); member != v.member && w != nil {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(v, w *interval) int { return cmp.Or(v.compare(w), cmp.Compare(v.member, w.member)) })
	cut := cutOf(len(all), quantile)
	st := rankPlace{better: slices.Index(all, v), ranked: len(all)}
	st.bottom = st.better >= len(all)-cut
	for _, w := range all[:cut] {
		if w.outcome == scored && w.generation == v.generation {
			st.donors = append(st.donors, w)
		}
	}
	return st
}

// cutOf is how many of n are the best, or the worst.
func cutOf(n int, quantile float64) int {
	if quantile <= 0 || n < 2 {
		return 0
	}
	return max(1, min(int(quantile*float64(n)), n/2))
}

// donors are the best members of a generation without one of them, which failed
// after it.
func (p *population) donors(generation, without int, quantile float64) []*interval {
	var all []*interval
	for member := range p.members {
		if w := p.latest(member, generation); member != without && w != nil && w.generation == generation && w.outcome == scored {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(v, w *interval) int { return cmp.Or(v.compare(w), cmp.Compare(v.member, w.member)) })
	return all[:min(len(all), max(1, cutOf(len(all), quantile)))]
}
