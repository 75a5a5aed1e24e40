package bayes

import (
	"math"
	"strconv"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

// judgeOf is the verdict on a study.
func judgeOf(t *testing.T, s *suggest.Study) Verdict {
	t.Helper()
	v, ok := NewJudge(s.Space).Judge(t.Context(), *s)
	if !ok {
		t.Fatal("there is no verdict")
	}
	return v
}

// lineOf is a study of the widths 1 to n, one trial of each, with the given losses.
func lineOf(t *testing.T, n int, loss func(width int) float64) (s *suggest.Study, add func(width int, state suggest.State, values ...float64)) {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{{Name: "width", Kind: suggest.Int, Min: "1", Max: strconv.Itoa(n)}})
	if err != nil {
		t.Fatal(err)
	}
	s = &suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}}
	add = func(width int, state suggest.State, values ...float64) {
		p, ok := space.Parse([]suggest.Assignment{{Name: "width", Value: strconv.Itoa(width)}})
		if !ok {
			t.Fatalf("width %d is not in the space", width)
		}
		trial := &suggest.Trial{Number: len(s.Trials), Point: p, State: state, Values: values}
		for step := range values {
			trial.Curve = append(trial.Curve, suggest.Sample{Step: int64(step + 1), Value: values[step]})
		}
		s.Put(trial)
	}
	for width := 1; width <= n; width++ {
		add(width, suggest.Succeeded, loss(width))
	}
	return s, add
}

// Width 15 was lucky once. Its further trials count, however they end, so that it is
// neither best nor measured for ever.
func TestATrialWithoutAResultCountsAgainstItsPoint(t *testing.T) {
	bowl := func(width int) float64 {
		if width == 15 {
			return 0
		}
		return 0.1 + float64((width-6)*(width-6))/100
	}
	for name, c := range map[string]struct {
		state  suggest.State
		values []float64
		count  int // of width 15 after two such trials
	}{
		"failed":           {suggest.Failed, nil, 0},
		"without a number": {suggest.Unmeasured, nil, 0},
		"NaN":              {suggest.Succeeded, []float64{math.NaN()}, 0},
		"stopped early":    {suggest.Pruned, []float64{0.05}, 0},
		"killed":           {suggest.Killed, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, add := lineOf(t, 16, bowl)
			of := func(width float64) (p Judged) {
				for _, p := range judgeOf(t, s).Points {
					if p.Trial.Point[0].Float() == width {
						return p
					}
				}
				return p
			}
			if of(15).Count != 1 {
				t.Fatalf("width 15 has %+v after its first trial", of(15))
			}
			add(15, c.state, c.values...)
			if c.count == 0 {
				best := judgeOf(t, s).Points[0]
				if got := of(15); got.Count != 2 || got.Results != 1 || best.Trial.Point[0].Float() == 15 {
					t.Errorf("after one such trial: %+v, and %+v is best", got, best)
				}
			}
			add(15, c.state, c.values...)
			if got := of(15); got.Count != c.count {
				t.Errorf("after two such trials width 15 is judged by %d, want %d", got.Count, c.count)
			}
			if v := judgeOf(t, s); c.count == 0 && len(v.Points) != 15 {
				t.Errorf("%d points are judged, want those of 15 widths", len(v.Points))
			}
		})
	}
}

// More points violate a constraint than the model sees, all with better losses than the
// few that hold it.
func TestPointsThatHoldTheConstraintsAreJudgedFirst(t *testing.T) {
	s, _ := lineOf(t, judgedMost+20, func(width int) float64 { return float64(width) })
	s.Constraints = []suggest.Constraint{{Name: "over"}}
	for i, trial := range s.Trials {
		over := 1.0
		if i >= judgedMost {
			over = 0
		}
		after := *trial
		after.Constraints = []float64{over}
		s.Put(&after)
	}
	if v := judgeOf(t, s); len(v.Points) != 20 {
		t.Errorf("%d points are judged, want the 20 that hold the constraint", len(v.Points))
	}
}
