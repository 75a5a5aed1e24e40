package algorithm_test

import (
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// queuedPointsAreNext queues a point in the middle of a study, and the same again.
func queuedPointsAreNext(t *testing.T, r propose.Registration) {
	for _, name := range []string{"mixed", "tree"} {
		a, space := build(t, r, spaces()[name])
		s := suggesttest.NewStudy(space, 3)
		for len(s.Trials) < 3 {
			s.Put(suggest.PendingTrials(s.NextNumber(), ask(t, a, s, 1))...)
		}
		point := space.Decode(slices.Repeat([]float64{0.1}, space.Len()))
		s.Queued = []suggest.QueuedPoint{{ID: "a", Point: point}, {ID: "b", Point: point}}
		for len(s.Trials) < 7 {
			got := ask(t, a, s, 1)
			if len(got) == 0 {
				t.Fatalf("%s: no proposal after %d trials", name, len(s.Trials))
			}
			s.Put(suggest.PendingTrials(s.NextNumber(), got)...)
		}
		for i, trial := range s.Trials[3:] {
			want := []string{"a", "b", "", ""}[i]
			if trial.Meta[suggest.MetaQueued] != want || want != "" && !trial.Point.Equal(point) {
				t.Errorf("%s: trial %d is %v with %v, want the queued point %q", name, trial.Number, space.Assignments(trial.Point), trial.Meta, want)
			}
		}
	}
}
