package bayes

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
)

// curveData reads a study of one number with the given trials.
func curveData(t *testing.T, trials []*suggest.Trial) *data {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{{Name: "x", Kind: suggest.Double, Min: "0", Max: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	s := suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}}
	for i, trial := range trials {
		numbered := *trial
		if numbered.Number = i; numbered.Point == nil {
			numbered.Point = space.Decode([]float64{float64(i+1) / 8})
		}
		s.Put(&numbered)
	}
	return newData(history.NewReader(space), s, nil, nil)
}

// falling is a curve of so many steps whose value at each step is high/step,
// reported at each multiple of every.
func falling(steps, every int64, high float64) []suggest.Sample {
	var out []suggest.Sample
	for step := every; step <= steps; step += every {
		out = append(out, suggest.Sample{Step: step, Value: high / float64(step)})
	}
	return out
}

func TestCurvesAreSeenAtLevels(t *testing.T) {
	whole := &suggest.Trial{State: suggest.Succeeded, Values: []float64{0.5}, Curve: falling(27, 1, 54)}
	type row struct{ Resource, Loss float64 }
	cases := map[string]struct {
		trial *suggest.Trial
		want  []row
	}{
		"to its end":                     {whole, []row{{0, 54}, {1.0 / 3, 18}, {2.0 / 3, 6}, {1, 0.5}}},
		"stopped on a level":             {&suggest.Trial{State: suggest.Pruned, Values: []float64{9}, Curve: falling(3, 1, 27)}, []row{{0, 27}, {1.0 / 3, 9}}},
		"stopped long after a level":     {&suggest.Trial{State: suggest.Pruned, Values: []float64{1}, Curve: falling(18, 1, 18)}, []row{{0, 18}, {1.0 / 3, 6}, {2.0 / 3, 2}, {math.Log(18) / math.Log(27), 1}}},
		"running":                        {&suggest.Trial{State: suggest.Running, Curve: falling(5, 1, 30)}, []row{{0, 30}, {1.0 / 3, 10}}},
		"stopped without a curve":        {&suggest.Trial{State: suggest.Pruned, Values: []float64{7}}, []row{{0, 7}}},
		"reports that skip levels":       {&suggest.Trial{State: suggest.Pruned, Values: []float64{2}, Curve: falling(10, 10, 20)}, []row{{math.Log(10) / math.Log(27), 2}}},
		"reports that are no number":     {&suggest.Trial{State: suggest.Pruned, Values: []float64{4}, Curve: []suggest.Sample{{Step: 1, Value: math.NaN()}, {Step: 2, Value: 5}, {Step: 3, Value: 4}}}, []row{{math.Log(2) / math.Log(27), 5}, {1.0 / 3, 4}}},
		"reports in disorder":            {&suggest.Trial{State: suggest.Pruned, Values: []float64{4}, Curve: []suggest.Sample{{Step: 3, Value: 4}, {Step: 1, Value: 5}}}, []row{{0, 5}, {1.0 / 3, 4}}},
		"to the end of a part of it all": {&suggest.Trial{State: suggest.Succeeded, Resource: 9, Values: []float64{3}, Curve: falling(9, 3, 27)}, []row{{1.0 / 3, 9}, {2.0 / 3, 3}}},
	}
	stopped := &suggest.Trial{State: suggest.Pruned, Values: []float64{50}, Curve: falling(1, 1, 50)}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := curveData(t, []*suggest.Trial{whole, stopped, c.trial})
			var got []row
			for _, o := range d.measured {
				if o.Number == 2 {
					got = append(got, row{o.X[1], o.Losses[0]})
				}
			}
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
			if diff := cmp.Diff(c.want, got, near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Without a trial that was stopped, curves tell nothing that the ends do not.
func TestCurvesMatterOnlyWhereTrialsAreStopped(t *testing.T) {
	whole := &suggest.Trial{State: suggest.Succeeded, Values: []float64{0.5}, Curve: falling(27, 1, 54)}
	if d := curveData(t, []*suggest.Trial{whole, whole}); d.levels.joint() || len(d.measured) != 2 {
		t.Errorf("%v, %d rows", d.levels, len(d.measured))
	}
	d := curveData(t, []*suggest.Trial{whole, {State: suggest.Pruned, Values: []float64{6}, Curve: falling(9, 1, 54)}})
	if diff := cmp.Diff(levels{1, 3, 9, 27}, d.levels); diff != "" {
		t.Error(diff)
	}
}

// Where losses at a level are a line of those at the next, alignment brings each
// to what the trial comes to at the end, also when it was stopped before.
func TestAlignmentFollowsLines(t *testing.T) {
	var trials []*suggest.Trial
	want := map[int]float64{}
	for i := range 12 {
		end := float64(i * i)
		curve := []suggest.Sample{{Step: 1, Value: end + 700}, {Step: 3, Value: end + 70}, {Step: 9, Value: end + 7}, {Step: 27, Value: end}}
		trial := &suggest.Trial{State: suggest.Succeeded, Values: []float64{end}, Curve: curve}
		if i >= 4 {
			trial = &suggest.Trial{State: suggest.Pruned, Curve: curve[:1+i%3]}
			if i == 8 { // stopped between two levels
				trial.Curve = append(trial.Curve, suggest.Sample{Step: 18, Value: end + 7*(1-math.Log(2)/math.Log(3))})
			}
			trial.Values = []float64{trial.Curve[len(trial.Curve)-1].Value}
		}
		trials, want[i] = append(trials, trial), end
	}
	d := curveData(t, trials)
	losses := d.losses([]float64{1})
	const largest = 121 + 700 // which is brought to 1
	for i, o := range d.measured {
		if got := losses[i] * largest; math.Abs(got-want[o.Number]) > 1e-9 {
			t.Errorf("trial %d at %v: %v, want %v", o.Number, o.X[1], got, want[o.Number])
		}
	}
}

// A trial whose first report after a level comes late, and is the last, is not taken for one
// that came to that at the level.
func TestAlignmentOfLateReports(t *testing.T) {
	const perLevel = 10.0 // a loss falls by this from level to level
	value := func(end float64, step int64) float64 { return end + perLevel*math.Log(27/float64(step))/math.Log(3) }
	curve := func(end float64, steps ...int64) (out []suggest.Sample) {
		for _, step := range steps {
			out = append(out, suggest.Sample{Step: step, Value: value(end, step)})
		}
		return out
	}
	var trials []*suggest.Trial
	for i := range 12 {
		end := float64(i)
		trial := &suggest.Trial{State: suggest.Succeeded, Values: []float64{end}, Curve: curve(end, 9, 27)}
		switch {
		case i%4 == 3:
			trial = &suggest.Trial{State: suggest.Pruned, Values: []float64{value(end, 18)}, Curve: curve(end, 18)}
		case i%4 == 2:
			trial = &suggest.Trial{State: suggest.Pruned, Values: []float64{value(end, 9)}, Curve: curve(end, 9)}
		}
		trials = append(trials, trial)
	}
	d := curveData(t, trials)
	losses := d.losses([]float64{1})
	largest := value(10, 9)
	for i, o := range d.measured {
		if got := losses[i] * largest; math.Abs(got-float64(o.Number)) > 1e-9 {
			t.Errorf("trial %d at %v: %v", o.Number, o.X[1], got)
		}
	}
}

// It is not known yet whether a trial that runs will hold the constraints, so that
// its value is nothing to improve upon; it is learned from all the same.
func TestRunningTrialsAreNoIncumbentsUnderConstraints(t *testing.T) {
	trials := []*suggest.Trial{
		{State: suggest.Succeeded, Values: []float64{0.5}, Constraints: []float64{-1}, Curve: falling(27, 1, 54)},
		{State: suggest.Pruned, Values: []float64{5}, Constraints: []float64{-1}, Curve: falling(3, 1, 15)},
		{State: suggest.Running, Curve: falling(9, 1, 0.9)},
	}
	for _, constrained := range []bool{false, true} {
		d := curveData(t, trials)
		if constrained {
			s := d.study
			s.Constraints = []suggest.Constraint{{Name: "size"}}
			d = newData(history.NewReader(s.Space), s, nil, nil)
		}
		rows := 0
		for _, o := range d.measured {
			if o.Number != 2 {
				continue
			}
			rows++
			if got := d.violated()[history.RowKey(o.X)]; got != constrained {
				t.Errorf("with constraints %v: a row of a running trial is left out: %v", constrained, got)
			}
		}
		if rows == 0 {
			t.Error("running trials are not learned from")
		}
	}
}
