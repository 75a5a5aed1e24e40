package algorithm_test

import (
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// laterObjectivesCount judges the same trials by two second objectives that are
// each other's opposite: what learns from all objectives proposes other points,
// and what says that it looks at the first alone may not be wrong about that.
func laterObjectivesCount(t *testing.T, r propose.Registration) {
	if !r.Adaptive || r.Repeats || r.MultiFidelity {
		// It draws, or promotes by the first objective whatever draws the points.
		if r.FirstObjective != r.Adaptive {
			t.Errorf("the registration says %v", r.FirstObjective)
		}
		return
	}
	a, space := build(t, r, spaces()["mixed"])
	once := studyOf(t, a, space, 3, 60)
	judged := func(sign float64) suggest.Study {
		s := once
		s.Objectives = append(slices.Clone(once.Objectives), suggest.Objective{Name: "second"})
		for i, trial := range once.Trials {
			if v := trial.Values; len(v) > 0 {
				s.Update(i, func(t *suggest.Trial) { t.Values = []float64{v[0], sign * float64(i%7)} })
			}
		}
		return s
	}
	up, down := lines(space, ask(t, a, judged(1), 6)), lines(space, ask(t, a, judged(-1), 6))
	if same := slices.Equal(up, down); same != r.FirstObjective {
		t.Errorf("another second objective changes nothing: %v; the registration says %v\n%v\n%v", same, r.FirstObjective, up, down)
	}
}
