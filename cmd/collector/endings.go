package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector/report"
)

// ending is how an attempt ended.
type ending struct {
	n           int
	summary     report.Summary
	history     report.History
	undelivered int64
}

// endings sum up the attempts that have ended, in the space of one summary.
type endings struct {
	begun, ended int // attempts
	newest       ending
	// Of the others, those that are not final, and what they lack.
	cut, lost int64
	// history is that of the first attempts, up to next. later are those that ended
	// before one that is older, in order.
	history report.History
	next    int
	later   []ending
}

// add takes in an attempt that has ended.
func (k *endings) add(e ending) {
	k.ended++
	i, _ := slices.BinarySearchFunc(k.later, e, func(a, b ending) int { return cmp.Compare(a.n, b.n) })
	k.later = slices.Insert(k.later, i, e)
	for len(k.later) > 0 && k.later[0].n == k.next {
		k.history = k.history.Then(k.later[0].history)
		k.later, k.next = slices.Delete(k.later, 0, 1), k.next+1
	}
	other := e
	if k.ended == 1 || e.n > k.newest.n {
		k.newest, other = e, k.newest
		if k.ended == 1 {
			return
		}
	}
	if !other.summary.Final {
		k.cut++
		k.lost += other.undelivered
	}
}

// whole is the summary of all attempts, under the name of the newest. It is final
// if all are, and else says what the others lack.
func (k *endings) whole() report.Summary {
	s := k.newest.summary
	s.Final = s.Final && k.cut == 0 && k.ended == k.begun
	all := k.history
	for _, e := range k.later {
		all = all.Then(e.history)
	}
	s.Metrics = all.Metrics()
	var said []string
	if k.cut > 0 {
		said = append(said, fmt.Sprintf("earlier attempts that were not reported to their end: %d; %d of their points were not delivered", k.cut, k.lost))
	}
	if near := all.Near(); near > 0 && !s.Final {
		said = append(said, fmt.Sprintf("the least and the greatest value in the summary may not be exact, of %d metrics: of an attempt that a later one went back behind, some values are kept", near))
	}
	if s.Note != "" {
		said = append(said, s.Note)
	}
	s.Note = strings.Join(said, "; ")
	return s
}
