package algorithm

import (
	"slices"
	"sync"

	"github.com/vernier-ml/vernier/suggest"
)

// triedPoints keeps the keys of the points of the last study, as one key costs
// more than all else that is done for a trial that was there before. It may be
// asked from several goroutines at once. The zero triedPoints is empty.
type triedPoints struct {
	mu     sync.Mutex
	trials []*suggest.Trial // of the last study
	keys   map[string]struct{}
}

// open is newTried, or newTriedAlways, of the study's trials. Call done when the
// question is answered.
func (x *triedPoints) open(space suggest.Space, s suggest.Study, always bool) (t *tried, done func()) {
	trials := s.Trials
	if !x.mu.TryLock() { // somebody else is at it
		if always {
			return newTriedAlways(space, trials), func() {}
		}
		return newTried(space, trials), func() {}
	}
	t = newTried(space, nil)
	t.allowed = func() []*suggest.Trial { return trials }
	if always || t.keys != nil {
		x.read(space, s)
		t.keys = x.keys
	}
	return t, func() {
		t.undo()
		x.mu.Unlock()
	}
}

// read brings the keys up to the trials.
func (x *triedPoints) read(space suggest.Space, s suggest.Study) {
	trials := s.Trials
	same := x.agree(trials)
	if same < len(x.trials) || x.keys == nil { // other trials may have had the same points
		same, x.keys = 0, make(map[string]struct{}, len(trials))
	}
	for _, t := range trials[same:] {
		if key, ok := space.Key(t.Point); ok {
			x.keys[key] = struct{}{}
		}
	}
	x.trials = slices.Clone(trials)
}

// agree is how many of the first trials have the points of those that were read.
func (x *triedPoints) agree(trials []*suggest.Trial) int {
	n := min(len(trials), len(x.trials))
	for i := range n {
		if x.trials[i] != trials[i] && !x.trials[i].Point.Equal(trials[i].Point) {
			return i
		}
	}
	return n
}
