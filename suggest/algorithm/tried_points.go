package algorithm

import (
	"sync"
	"unsafe"

	"github.com/vernier-ml/vernier/suggest"
)

// triedPoints keeps the keys of the points of the last study, as one key costs
// more than all else that is done for a trial that was there before. It may be
// asked from several goroutines at once. The zero triedPoints is empty.
type triedPoints struct {
	mu      sync.Mutex
	points  []suggest.Point // of the last study's trials, in its order
	settled settled         // the first of points
	keys    map[string]struct{}
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
	t.allowed = func() []suggest.Trial { return inOrder(trials) }
	if always || t.keys != nil {
		x.read(space, s)
		t.keys = x.keys
	}
	return t, func() {
		t.undo()
		x.mu.Unlock()
	}
}

// read brings the keys up to the trials. Points are never modified in place, so
// that the same memory has the same content.
func (x *triedPoints) read(space suggest.Space, s suggest.Study) {
	trials := s.Trials
	same := x.agree(x.settled.next(s), trials)
	if same < len(x.points) || x.keys == nil { // other trials may have had the same points
		same, x.points, x.keys = 0, nil, make(map[string]struct{}, len(trials))
	}
	for i := range trials[same:] {
		p := trials[same+i].Point
		x.points = append(x.points, p)
		if key, ok := space.Key(p); ok {
			x.keys[key] = struct{}{}
		}
	}
}

// agree is how many of the first trials have, in this order, the points that are
// kept, of which so many are known to.
func (x *triedPoints) agree(known int, trials []suggest.Trial) int {
	n := min(len(trials), len(x.points))
	for i := known; i < n; i++ {
		p, q := trials[i].Point, x.points[i]
		if unsafe.SliceData(p) == unsafe.SliceData(q) && len(p) == len(q) {
			continue
		}
		if !p.Equal(q) {
			return i
		}
		x.points[i] = p
	}
	return n
}
