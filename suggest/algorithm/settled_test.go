package algorithm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

// readers are all that read studies and keep what they have read.
type readers struct {
	history *historian
	ledger  *ledger
	points  triedPoints
}

func newReaders(space suggest.Space) *readers {
	return &readers{history: newHistorian(space), ledger: newLedger(space)}
}

// read shows what they make of a study.
func (r *readers) read(s suggest.Study) string {
	out := show(r.history.read(s))
	r.ledger.read(s, 1)
	known, done := r.points.open(s.Space, s, true)
	defer done()
	return out + showLedger(r.ledger) + fmt.Sprint(keysOf(known))
}

// settledInOrder says whether so many of the first trials, of those that there
// are, can be settled by their numbers.
func settledInOrder(trials []suggest.Trial, settled int) bool {
	for i := 1; i < len(trials) && settled > 0; i++ {
		if trials[i].Number <= trials[min(i, settled)-1].Number {
			return false
		}
	}
	return true
}

// Behind what is settled, and with another record anywhere, what was read before
// must never show.
func TestReadersSeeEachEditThatNoPromiseRulesOut(t *testing.T) {
	first, second := new(suggest.Record), new(suggest.Record)
	for _, at := range []int{7, 2*together + 3} {
		promises := map[string]suggest.Study{
			"as many":        {Record: first, Settled: at},
			"fewer":          {Record: first, Settled: at / 2},
			"another record": {Record: second, Settled: at + 5},
			"no record":      {Settled: at + 5},
			"below 0":        {Record: first, Settled: -at},
		}
		for promised, promise := range promises {
			for name, edit := range edits(at) {
				plain := markedStudy(t)
				if edit(&plain); promise.Record != nil && !settledInOrder(plain.Trials, promise.Settled) {
					continue // nobody may promise that
				}
				t.Run(fmt.Sprintf("%s at %d, %s", name, at, promised), func(t *testing.T) {
					s := markedStudy(t)
					s.Trials[7].State = suggest.Failed
					s.Record, s.Settled = first, at
					cached := newReaders(s.Space)
					cached.read(s)
					edit(&s)
					s.Record, s.Settled = promise.Record, promise.Settled
					for range 2 { // the second time, what was read is what there is
						plain := s
						plain.Record = nil
						if diff := cmp.Diff(newReaders(s.Space).read(plain), cached.read(s)); diff != "" {
							t.Errorf("(-fresh +cached):\n%s", diff)
						}
					}
				})
			}
		}
	}
}

// The other way around: what is settled is not looked at, wherever it lies. That
// shows where a promise is broken.
func TestWhatIsSettledIsNotLookedAt(t *testing.T) {
	record := new(suggest.Record)
	for _, at := range []int{0, 5, together, 3 * together} {
		s := markedStudy(t)
		s.Record, s.Settled = record, at+1
		r := newReaders(s.Space)
		want := r.read(s)
		s.Trials = slices.Clone(s.Trials)
		s.Trials[at].Values, s.Trials[at].Point = []float64{-1, -1}, s.Trials[at+1].Point
		if diff := cmp.Diff(want, r.read(s)); diff != "" {
			t.Errorf("trial %d is settled and was looked at: %s", at, diff)
		}
		s.Settled--
		if r.read(s) == want {
			t.Errorf("trial %d is not settled and was not looked at", at)
		}
	}
}

// What forgets the trials forgets what is settled too.
func TestAReaderThatBeginsAnewLooksAtAll(t *testing.T) {
	for name, change := range map[string]func(s *suggest.Study){
		"other objectives":  func(s *suggest.Study) { s.Objectives = s.Objectives[:1] },
		"other constraints": func(s *suggest.Study) { s.Constraints = nil },
	} {
		s := markedStudy(t)
		s.Settle()
		s.Settled = 100
		r := newReaders(s.Space)
		r.read(s)
		change(&s)
		if diff := cmp.Diff(newReaders(s.Space).read(s), r.read(s)); diff != "" {
			t.Errorf("%s (-fresh +cached):\n%s", name, diff)
		}
	}
	s := markedStudy(t)
	s.Settle()
	l, fresh := newLedger(s.Space), newLedger(s.Space)
	l.read(s, 1)
	l.read(s, 2)
	fresh.read(s, 2)
	if diff := cmp.Diff(showLedger(fresh), showLedger(l)); diff != "" {
		t.Errorf("another seed (-fresh +cached):\n%s", diff)
	}
}
