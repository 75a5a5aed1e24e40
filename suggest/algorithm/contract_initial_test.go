package algorithm_test

import (
	"github.com/vernier-ml/vernier/suggest/suggesttest"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// initialPointsComeFirst gives points, one of them twice and one that is not in
// the space, and asks in batches of several sizes.
func initialPointsComeFirst(t *testing.T, r propose.Registration) {
	for _, name := range []string{"mixed", "small", "tree"} {
		for _, batch := range []int{1, 2, 5} {
			a, space := build(t, r, spaces()[name])
			one := space.Decode(slices.Repeat([]float64{0.1}, space.Len()))
			two := space.Decode(slices.Repeat([]float64{0.9}, space.Len()))
			s := suggesttest.NewStudy(space, 3)
			s.Initial = []suggest.Point{one, make(suggest.Point, space.Len()), one, two}
			for len(s.Trials) < 5 {
				got := ask(t, a, s, batch)
				if len(got) == 0 {
					t.Fatalf("%s, %d at a time: no proposal", name, batch)
				}
				s.Put(suggest.PendingTrials(s.NextNumber(), got)...)
			}
			for i, want := range []suggest.Point{one, two} {
				if got := s.Trials[i].Point; !got.Equal(want) {
					t.Errorf("%s, %d at a time: trial %d is %v, want %v", name, batch, i, space.Assignments(got), space.Assignments(want))
				}
			}
			for _, later := range s.Trials[2:] {
				if later.Point.Equal(one) || later.Point.Equal(two) {
					t.Errorf("%s, %d at a time: trial %d is an initial point again", name, batch, later.Number)
				}
			}
		}
	}
}
