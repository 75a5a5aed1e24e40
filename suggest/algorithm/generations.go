package algorithm

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// generations rebuilds the state of an algorithm whose trials carry their
// generation, by following these through the trials of a study. A generation
// ends when enough results wait: all of them then make the next state, late
// ones of earlier generations and those of points from elsewhere too. More
// workers thus get more samples of one generation, and no result is lost.
//
// S is a state, which is not modified once it is made.
type generations[S any] struct {
	ledger *ledger
	rules  rules[S]

	state  *S          // nil before the first generation
	number int         // of state's generation
	states map[int]*S  // of the generations that have waiting entries
	of     []int       // of each entry that was read, its generation or foreign
	used   []bool      // of each entry that was read
	wait   []int       // entries that were read and not used, also those that have not ended
	missed []int       // entries that a generation should have been made of, but had not ended
	now    proposed[S] // how state came about
	ahead  proposed[S] // what new trials are made of
}

// proposed is the state that new trials are made of.
type proposed[S any] struct {
	state   *S
	number  int
	parents []int  // entries that led to it
	meta    string // that the trials carry
}

// rules are what differs between algorithms.
type rules[S any] interface {
	// meta is the key under which a trial keeps its generation and, after a
	// space, the numbers of the trials that led to the generation.
	meta() string
	// need is how many results end the generation of s; those that come before
	// the first generation, when s is nil, start it when there are as many.
	need(s *S) int
	// next is the state after g.state, made of the given entries. g.state is nil
	// when it is to be the first one, and then there may be no entries.
	next(g *generations[S], entries []int) *S
	// stale says whether results of a generation are of no use after s.
	stale(s *S, generation int) bool
}

// foreign is the generation of a trial that belongs to none.
const foreign = -1

func newGenerations[S any](l *ledger, r rules[S]) *generations[S] {
	return &generations[S]{ledger: l, rules: r, states: map[int]*S{}}
}

// advance reads the entries that are new, and ends the generation when enough
// results wait. It can be called again after an error.
func (g *generations[S]) advance(ctx context.Context) error {
	for len(g.of) < len(g.ledger.entries) {
		i := len(g.of)
		if err := ctx.Err(); err != nil && i%256 == 255 { // a few entries cost less than to do without them
			return err
		}
		generation, parents, ok := g.parse(g.ledger.entries[i].result)
		if ok && g.follows(generation, parents) {
			g.follow(generation, parents)
		}
		if !ok || g.state == nil || generation != g.number {
			generation = foreign
		}
		g.of, g.used, g.wait = append(g.of, generation), append(g.used, false), append(g.wait, i)
	}
	g.look()
	return nil
}

// outdated says whether entries that have changed would have made a difference
// to what was read: no service takes a result back and gives it again later, but
// then the answers must not depend on when they were read.
func (g *generations[S]) outdated(changed []int) bool {
	return slices.ContainsFunc(g.missed, func(i int) bool { return slices.Contains(changed, i) })
}

// follows says whether a trial is the first of the next generation.
func (g *generations[S]) follows(generation int, parents []int) bool {
	if g.state == nil {
		return generation == 0
	}
	return generation == g.number+1 && len(parents) > 0
}

// follow goes to the next generation.
func (g *generations[S]) follow(generation int, parents []int) {
	if g.ahead.state == nil || g.ahead.number != generation || !slices.Equal(parents, g.ahead.parents) {
		g.ahead = g.propose(generation, parents)
	}
	g.now = g.ahead
	g.state, g.number = g.now.state, generation
	for _, i := range parents {
		g.used[i] = true
	}
	g.wait = slices.DeleteFunc(g.wait, func(i int) bool {
		return g.used[i] || g.of[i] != foreign && g.rules.stale(g.state, g.of[i])
	})
	oldest := generation
	for _, i := range g.wait {
		if g.of[i] != foreign {
			oldest = g.of[i] // they are in order
			break
		}
	}
	maps.DeleteFunc(g.states, func(of int, _ *S) bool { return of < oldest })
	g.states[generation] = g.state
}

func (g *generations[S]) propose(generation int, parents []int) proposed[S] {
	return proposed[S]{state: g.rules.next(g, parents), number: generation, parents: parents, meta: g.text(generation, parents)}
}

// look finds the state that new trials are made of.
func (g *generations[S]) look() {
	var ready []int
	for _, i := range g.wait {
		if g.ledger.entries[i].result.ended() && (g.of[i] == foreign || !g.rules.stale(g.state, g.of[i])) {
			ready = append(ready, i)
		}
	}
	next := 0
	if g.state != nil {
		next = g.number + 1
	}
	switch enough := len(ready) >= g.rules.need(g.state); {
	case !enough && g.state != nil:
		g.ahead = g.now
		return
	case !enough:
		ready = nil
	}
	if g.ahead.state == nil || g.ahead.number != next || !slices.Equal(ready, g.ahead.parents) {
		g.ahead = g.propose(next, ready)
	}
}

// text is the Meta of a generation's trials.
func (g *generations[S]) text(generation int, entries []int) string {
	number := func(k int) int { return g.ledger.entries[entries[k]].number }
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
func (g *generations[S]) parse(t *result) (generation int, parents []int, ok bool) {
	text, ok := t.meta[g.rules.meta()]
	if !ok {
		return 0, nil, false
	}
	head, list, _ := strings.Cut(text, " ")
	generation, err := strconv.Atoi(head)
	if err != nil || generation < 0 {
		return 0, nil, false
	}
	if g.state != nil && generation == g.number {
		return generation, nil, true // how it came about is known
	}
	for part := range strings.SplitSeq(list, ",") {
		parents = g.parseRange(parents, part)
	}
	slices.Sort(parents)
	return generation, slices.Compact(parents), true
}

func (g *generations[S]) parseRange(parents []int, text string) []int {
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
	entries := g.ledger.entries[:len(g.of)]
	at, _ := slices.BinarySearchFunc(entries, low, func(e entry, number int) int { return e.number - number })
	for ; at < len(entries) && entries[at].number <= high; at++ {
		switch {
		case g.used[at]:
		case entries[at].result.ended():
			parents = append(parents, at)
		default:
			g.missed = append(g.missed, at)
		}
	}
	return parents
}
