package history

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Generations rebuilds the state of an algorithm whose trials carry their
// generation, by following these through the trials of a study. A generation
// ends when enough results wait: all of them then make the next state, late
// ones of earlier generations and those of points from elsewhere too. More
// workers thus get more samples of one generation, and no result is lost.
//
// S is a state, which is not modified once it is made.
type Generations[S any] struct {
	follower *Follower
	rules    Rules[S]

	State  *S          // nil before the first generation
	Number int         // of state's generation
	States map[int]*S  // of the generations that have waiting entries
	Of     []int       // of each entry that was read, its generation or foreign
	used   []bool      // of each entry that was read
	wait   []int       // entries that were read and not used, also those that have not ended
	missed []int       // entries that a generation should have been made of, but had not ended
	now    Proposed[S] // how state came about
	Ahead  Proposed[S] // what new trials are made of
}

// Proposed is the state that new trials are made of.
type Proposed[S any] struct {
	State   *S
	number  int
	parents []int  // entries that led to it
	Meta    string // that the trials carry
}

// Rules are what differs between algorithms.
type Rules[S any] interface {
	// meta is the key under which a trial keeps its generation and, after a
	// space, the numbers of the trials that led to the generation.
	Meta() string
	// need is how many results end the generation of s; those that come before
	// the first generation, when s is nil, start it when there are as many.
	Need(s *S) int
	// next is the state after g.state, made of the given entries. g.state is nil
	// when it is to be the first one, and then there may be no entries.
	Next(g *Generations[S], entries []int) *S
	// stale says whether results of a generation are of no use after s.
	Stale(s *S, generation int) bool
}

// Foreign is the generation of a trial that belongs to none.
const Foreign = -1

// NewGenerations replays what l follows, by the rules.
func NewGenerations[S any](l *Follower, r Rules[S]) *Generations[S] {
	return &Generations[S]{follower: l, rules: r, States: map[int]*S{}}
}

// Advance reads the entries that are new, and ends the generation when enough
// results wait. It can be called again after an error.
func (g *Generations[S]) Advance(ctx context.Context) error {
	for len(g.Of) < len(g.follower.History.Rows) {
		i := len(g.Of)
		if err := ctx.Err(); err != nil && i%256 == 255 { // a few entries cost less than to do without them
			return err
		}
		generation, parents, ok := g.parse(g.follower.History.Rows[i])
		if ok && g.follows(generation, parents) {
			g.follow(generation, parents)
		}
		if !ok || g.State == nil || generation != g.Number {
			generation = Foreign
		}
		g.Of, g.used, g.wait = append(g.Of, generation), append(g.used, false), append(g.wait, i)
	}
	g.look()
	return nil
}

// Outdated says whether entries that have changed would have made a difference
// to what was read: no service takes a result back and gives it again later, but
// then the answers must not depend on when they were read.
func (g *Generations[S]) Outdated(changed []int) bool {
	return slices.ContainsFunc(g.missed, func(i int) bool { return slices.Contains(changed, i) })
}

// follows says whether a trial is the first of the next generation.
func (g *Generations[S]) follows(generation int, parents []int) bool {
	if g.State == nil {
		return generation == 0
	}
	return generation == g.Number+1 && len(parents) > 0
}

// follow goes to the next generation.
func (g *Generations[S]) follow(generation int, parents []int) {
	if g.Ahead.State == nil || g.Ahead.number != generation || !slices.Equal(parents, g.Ahead.parents) {
		g.Ahead = g.propose(generation, parents)
	}
	g.now = g.Ahead
	g.State, g.Number = g.now.State, generation
	for _, i := range parents {
		g.used[i] = true
	}
	g.wait = slices.DeleteFunc(g.wait, func(i int) bool {
		return g.used[i] || g.Of[i] != Foreign && g.rules.Stale(g.State, g.Of[i])
	})
	oldest := generation
	for _, i := range g.wait {
		if g.Of[i] != Foreign {
			oldest = g.Of[i] // they are in order
			break
		}
	}
	maps.DeleteFunc(g.States, func(of int, _ *S) bool { return of < oldest })
	g.States[generation] = g.State
}

func (g *Generations[S]) propose(generation int, parents []int) Proposed[S] {
	return Proposed[S]{State: g.rules.Next(g, parents), number: generation, parents: parents, Meta: g.text(generation, parents)}
}

// look finds the state that new trials are made of.
func (g *Generations[S]) look() {
	var ready []int
	for _, i := range g.wait {
		if g.follower.History.Rows[i].Class.Ended() && (g.Of[i] == Foreign || !g.rules.Stale(g.State, g.Of[i])) {
			ready = append(ready, i)
		}
	}
	next := 0
	if g.State != nil {
		next = g.Number + 1
	}
	switch enough := len(ready) >= g.rules.Need(g.State); {
	case !enough && g.State != nil:
		g.Ahead = g.now
		return
	case !enough:
		ready = nil
	}
	if g.Ahead.State == nil || g.Ahead.number != next || !slices.Equal(ready, g.Ahead.parents) {
		g.Ahead = g.propose(next, ready)
	}
}

// text is the Meta of a generation's trials.
func (g *Generations[S]) text(generation int, entries []int) string {
	number := func(k int) int { return g.follower.History.Rows[entries[k]].Number }
	b := strconv.AppendInt(nil, int64(generation), 10)
	for k := 0; k < len(entries); k++ {
		first := k
		for k+1 < len(entries) && entries[k+1] == entries[k]+1 && number(k+1) == number(k)+1 {
			k++
		}
		b = append(b, " ,"[min(1, first)])
		b = strconv.AppendInt(b, int64(number(first)), 10)
		if k > first {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(number(k)), 10)
		}
	}
	return string(b)
}

// parse reads what text wrote. Trials that are not there, are used already or
// have not ended are left out.
func (g *Generations[S]) parse(t *Row) (generation int, parents []int, ok bool) {
	text, ok := t.Meta[g.rules.Meta()]
	if !ok {
		return 0, nil, false
	}
	head, list, _ := strings.Cut(text, " ")
	generation, err := strconv.Atoi(head)
	if err != nil || generation < 0 {
		return 0, nil, false
	}
	if g.State != nil && generation == g.Number {
		return generation, nil, true // how it came about is known
	}
	for part := range strings.SplitSeq(list, ",") {
		parents = g.parseRange(parents, part)
	}
	slices.Sort(parents)
	return generation, slices.Compact(parents), true
}

func (g *Generations[S]) parseRange(parents []int, text string) []int {
	from, to, isRange := strings.Cut(text, "-")
	low, err := strconv.Atoi(from)
	if err != nil {
		return parents
	}
	high := low
	if isRange {
		if high, err = strconv.Atoi(to); err != nil {
			return parents
		}
	}
	entries := g.follower.History.Rows[:len(g.Of)]
	at, _ := slices.BinarySearchFunc(entries, low, func(r *Row, number int) int { return r.Number - number })
	for ; at < len(entries) && entries[at].Number <= high; at++ {
		switch {
		case g.used[at]:
		case entries[at].Class.Ended():
			parents = append(parents, at)
		default:
			g.missed = append(g.missed, at)
		}
	}
	return parents
}
