package suggesttest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// promising asks an algorithm with all promises that a study which grows can
// make, and lets it prepare.
type promising struct {
	suggest.Algorithm
	promise *suggest.Study // of which Record and Settled are kept
}

func (a promising) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	s.Trials = slices.Clone(s.Trials) // the promise is not of memory
	s.Record, s.Settled = a.promise.Record, a.promise.Settled
	s.Settle()
	*a.promise = s
	if p, ok := a.Algorithm.(suggest.Preparer); ok {
		p.Prepare(ctx, s)
	}
	return a.Algorithm.Suggest(ctx, s, n)
}

// settledTrialsDoNotShow plays the same study with the promise of
// suggest.Study.Record and without.
func settledTrialsDoNotShow(t *testing.T, r algorithm.Registration) {
	for _, name := range []string{"mixed", "tree", "small"} {
		for _, parallel := range []int{1, 8} {
			a, space := build(t, r, spaces()[name])
			b, _ := build(t, r, spaces()[name])
			want := played(t, a, space, parallel)
			got := played(t, promising{b, new(suggest.Study)}, space, parallel)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d at a time: %s", name, parallel, firstDifference(got, want))
			}
		}
	}
}

// onlySettledTrialsAreTrusted asks one algorithm for studies of which a promise
// covers a part, or nothing, and changes the rest.
func onlySettledTrialsAreTrusted(t *testing.T, r algorithm.Registration) {
	one, two, three := new(suggest.Record), new(suggest.Record), new(suggest.Record)
	for _, name := range []string{"mixed", "tree"} {
		a, space := build(t, r, spaces()[name])
		s := history(t, a, space, 1, 20)
		for _, step := range []struct {
			name    string
			record  *suggest.Record
			settled int
			changed int // place of a trial that has another result
		}{
			{"all that have ended", one, 18, 18},
			{"fewer", one, 10, 10},
			{"as many", one, 10, 12},
			{"as many again", one, 10, 10},
			{"fewer still", one, 5, 6},
			{"those of another record", two, 18, 2},
			{"without a record", nil, 18, 3},
			{"a number below 0", two, -1, 2},
			{"more than there are", three, 1000, 4},
			{"those of the first record", one, 2, 5},
		} {
			s.Record, s.Settled, s.Trials = step.record, step.settled, slices.Clone(s.Trials)
			changed := &s.Trials[step.changed]
			changed.State, changed.Values = suggest.Succeeded, []float64{-1 - float64(step.changed)}
			plain := s
			plain.Record = nil
			b, _ := build(t, r, spaces()[name])
			got, want := fmt.Sprint(lines(space, ask(t, a, s, 2))), fmt.Sprint(lines(space, ask(t, b, plain, 2)))
			if got != want {
				t.Errorf("%s, %s settled: got %s, without the promise %s", name, step.name, got, want)
			}
		}
	}
}

// Witness holds that who asks an algorithm keeps the promises that
// suggest.Study.Record speaks of.
type Witness struct {
	suggest.Algorithm
	// T is told of a promise that is not kept.
	T testing.TB
	// Last is the study that was asked about last, with trials of its own.
	Last suggest.Study
	// Promised is how many of its trials it made a promise about.
	Promised int

	seen map[*suggest.Record][]string // the longest list of settled trials
}

// Suggest implements suggest.Algorithm.
func (w *Witness) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	w.look(s)
	w.Last = s
	w.Last.Trials = slices.Clone(s.Trials)
	return w.Algorithm.Suggest(ctx, s, n)
}

// Prepare implements suggest.Preparer.
func (w *Witness) Prepare(ctx context.Context, s suggest.Study) {
	w.look(s)
	if p, ok := w.Algorithm.(suggest.Preparer); ok {
		p.Prepare(ctx, s)
	}
}

func (w *Witness) look(s suggest.Study) {
	w.T.Helper()
	w.Promised = s.Promised()
	if s.Record == nil {
		return
	}
	if s.Settled != w.Promised {
		w.T.Errorf("%d of %d trials are settled", s.Settled, len(s.Trials))
	}
	settled := make([]string, w.Promised)
	for i := range s.Trials {
		t := &s.Trials[i]
		if last := min(i, w.Promised) - 1; last >= 0 && t.Number <= s.Trials[last].Number {
			w.T.Errorf("trial %d comes after trial %d, which is settled", t.Number, s.Trials[last].Number)
		}
		if i < w.Promised {
			if settled[i] = fmt.Sprintf("%+v", *t); !t.State.Finished() {
				w.T.Errorf("trial %d is settled and %v", t.Number, t.State)
			}
		}
	}
	before := w.seen[s.Record]
	for i := range min(len(before), len(settled)) {
		if before[i] != settled[i] {
			w.T.Errorf("a settled trial changed from %s to %s", before[i], settled[i])
		}
	}
	if len(settled) > len(before) {
		if w.seen == nil {
			w.seen = map[*suggest.Record][]string{}
		}
		w.seen[s.Record] = settled
	}
}
