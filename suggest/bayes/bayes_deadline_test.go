package bayes

import (
	"context"
	"testing"
	"time"
)

// untilAsked is a context whose deadline passes after so many looks at it.
type untilAsked struct {
	context.Context
	left int
}

func (c *untilAsked) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func (*untilAsked) Deadline() (time.Time, bool) { return time.Time{}, false }

// Wherever the time is up, there is an answer, it comes after a bounded number
// of further looks, and the next question is answered as if there had been none.
func TestBayesianMayBeInterruptedAnywhere(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 6, 1)
	playedBy(t, bayesian(t, space), &s, 60, bowlAt(0.4))
	want, err := bayesian(t, space).Suggest(t.Context(), s, 1)
	if err != nil {
		t.Fatal(err)
	}
	fallbacks := map[string]int{}
	for looks := 0; looks < 5000; looks += 1 + looks/8 {
		a := bayesian(t, space)
		ctx := &untilAsked{Context: t.Context(), left: looks}
		got, err := a.Suggest(ctx, s, 3)
		if err != nil || len(got) == 0 || !space.Contains(got[0].Point) {
			t.Fatalf("after %d looks: %v, %v", looks, got, err)
		}
		if ctx.left < -100 { // each cheap: steps that are no longer taken
			t.Errorf("after %d looks it goes on for %d more", looks, -ctx.left)
		}
		fallbacks[got[0].Fallback]++
		if again, err := a.Suggest(t.Context(), s, 1); err != nil || !again[0].Point.Equal(want[0].Point) {
			t.Fatalf("after %d looks the next answer is %v, %v, want %v", looks, again, err, want)
		}
	}
	if fallbacks["deadline"] == 0 || fallbacks[""] == 0 || len(fallbacks) != 2 {
		t.Errorf("it answered in these ways: %v", fallbacks)
	}
}
