package history

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
)

func treeSpace(t *testing.T) suggest.Space {
	t.Helper()
	space, err := suggest.NewSpace([]suggest.ParameterSpec{
		{Name: "model", Kind: suggest.Categorical, List: []string{"svm", "mlp"}},
		{Name: "layers", Kind: suggest.Int, Min: "1", Max: "4", When: &suggest.When{Parameter: "model", In: []string{"mlp"}}},
		{Name: "lr", Kind: suggest.Double, Min: "0", Max: "10"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func at(t *testing.T, space suggest.Space, pairs ...string) suggest.Point {
	t.Helper()
	var a []suggest.Assignment
	for i := 0; i < len(pairs); i += 2 {
		a = append(a, suggest.Assignment{Name: pairs[i], Value: pairs[i+1]})
	}
	p, ok := space.Parse(a)
	if !ok {
		t.Fatalf("%v is not in the space", pairs)
	}
	return p
}

func TestEncodingGoesAndComesBack(t *testing.T) {
	space := treeSpace(t)
	e := NewEncoding(space)
	for _, p := range []suggest.Point{
		at(t, space, "model", "svm", "lr", "0"), at(t, space, "model", "svm", "lr", "10"),
		at(t, space, "model", "mlp", "layers", "1", "lr", "2.5"), at(t, space, "model", "mlp", "layers", "4", "lr", "7"),
	} {
		if back := e.Point(e.Row(p)); !back.Equal(p) {
			t.Errorf("%v comes back as %v", space.Assignments(p), space.Assignments(back))
		}
	}
	x := e.Row(at(t, space, "model", "svm", "lr", "5"))
	if x[0] != 0 || !math.IsNaN(x[1]) || x[2] != 0.5 {
		t.Errorf("row %v", x)
	}
	if got := fmt.Sprint(space.Assignments(e.Point([]float64{1, math.NaN(), 0.25}))); got != "[{model mlp} {layers 3} {lr 2.5}]" {
		t.Errorf("an unknown coordinate of an active parameter gives %v", got)
	}
}

// study has a trial of each sort.
func sortsOfTrials(t *testing.T, space suggest.Space) suggest.Study {
	p := at(t, space, "model", "svm", "lr", "5")
	trial := func(number int, state suggest.State, values ...float64) *suggest.Trial {
		return &suggest.Trial{Number: number, Point: p, State: state, Values: values}
	}
	return suggest.Study{
		Space:      space,
		Objectives: []suggest.Objective{{Name: "accuracy", Direction: suggest.Maximize}},
		Trials: []*suggest.Trial{
			trial(0, suggest.Succeeded, math.NaN()), trial(1, suggest.Pruned, 0.25), trial(2, suggest.Failed), trial(3, suggest.Succeeded, 0.5),
			trial(4, suggest.Killed), trial(5, suggest.Running), trial(6, suggest.Pending),
			trial(7, suggest.Unmeasured), {Number: 8, State: suggest.Succeeded, Values: []float64{1}},
			trial(9, suggest.Succeeded, math.Inf(1)), trial(10, suggest.Succeeded),
		},
		Warm: []*suggest.Trial{trial(0, suggest.Succeeded, 3), trial(0, suggest.Failed)},
	}
}

func numbers(observations []*Row) []int {
	out := []int{}
	for _, o := range observations {
		out = append(out, o.Number)
	}
	return out
}

func TestHistorySortsTrials(t *testing.T) {
	space := treeSpace(t)
	h := NewReader(space).Read(sortsOfTrials(t, space))
	got := map[string][]int{"measured": numbers(h.Measured), "failed": numbers(h.Failed), "running": numbers(h.Running), "warm": numbers(h.Warm)}
	want := map[string][]int{"measured": {1, 3}, "failed": {0, 2, 7, 9, 10}, "running": {5, 6}, "warm": {0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if h.Measured[0].Losses[0] != -0.25 || h.Measured[0].State != suggest.Pruned || h.Measured[1].State == suggest.Pruned {
		t.Errorf("pruned trial: %+v", h.Measured[0])
	}
}

// What was read before must never show: each change of a trial is seen.
func TestHistorySeesEachChange(t *testing.T) {
	space := treeSpace(t)
	other := at(t, space, "model", "mlp", "layers", "2", "lr", "1")
	limit := 1.0
	changes := map[string]func(s *suggest.Study){
		"a value":              func(s *suggest.Study) { s.Update(3, func(t *suggest.Trial) { t.Values = []float64{0.75} }) },
		"a state":              func(s *suggest.Study) { s.Update(5, func(t *suggest.Trial) { t.State = suggest.Failed }) },
		"a point":              func(s *suggest.Study) { s.Update(3, func(t *suggest.Trial) { t.Point = other }) },
		"a trial is gone":      func(s *suggest.Study) { s.Trials = s.Trials[1:] },
		"a new trial":          func(s *suggest.Study) { s.Trials = append(s.Trials, &suggest.Trial{Number: 11, Point: other}) },
		"the direction":        func(s *suggest.Study) { s.Objectives = []suggest.Objective{{Name: "accuracy"}} },
		"another objective":    func(s *suggest.Study) { s.Objectives = append(s.Objectives, suggest.Objective{}) },
		"a constraint":         func(s *suggest.Study) { s.Constraints = []suggest.Constraint{{Max: &limit}} },
		"a constraint's value": func(s *suggest.Study) { s.Update(3, func(t *suggest.Trial) { t.Constraints = []float64{2} }) },
		"the curve": func(s *suggest.Study) {
			s.Update(3, func(t *suggest.Trial) { t.Curve = []suggest.Sample{{Step: 1, Value: 2}} })
		},
		"the meta":     func(s *suggest.Study) { s.Update(3, func(t *suggest.Trial) { t.Meta = suggest.Meta{"a": "b"} }) },
		"the resource": func(s *suggest.Study) { s.Update(3, func(t *suggest.Trial) { t.Resource = 3 }) },
		"warm trials":  func(s *suggest.Study) { s.Warm = s.Warm[1:] },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s := sortsOfTrials(t, space)
			h, changed := NewReader(space), s
			change(&changed)
			for i, study := range []suggest.Study{s, changed, s} { // there, and back
				if got, want := show(h.Read(study)), show(NewReader(space).Read(study)); got != want {
					t.Errorf("reading %d: got\n%s\nwant\n%s", i, got, want)
				}
			}
		})
	}
}

func show(h History) string {
	out := ""
	for _, list := range [][]*Row{h.Measured, h.Failed, h.Running, h.Warm} {
		for _, o := range list {
			out += fmt.Sprintln(o.Number, o.X, o.Losses, o.Violations, o.Violation, o.State == suggest.Pruned, o.Curve, o.Meta, o.Resource)
		}
		out += "--\n"
	}
	return out
}

func TestHistoryKeepsWhatDidNotChange(t *testing.T) {
	space := treeSpace(t)
	h := NewReader(space)
	s := sortsOfTrials(t, space)
	first := h.Read(s)
	s.Trials = append(s.Trials, &suggest.Trial{Number: 11, Point: s.Trials[0].Point})
	second := h.Read(s)
	if first.Measured[0] != second.Measured[0] || len(second.Running) != len(first.Running)+1 {
		t.Error("a known trial was read anew")
	}
}

func TestConstraintsAreMeasured(t *testing.T) {
	space := treeSpace(t)
	limit := 10.0
	s := sortsOfTrials(t, space)
	s.Constraints = []suggest.Constraint{{Name: "latency", Max: &limit}, {Name: "memory"}}
	s.Update(3, func(t *suggest.Trial) { t.Constraints = []float64{12, -3} })
	h := NewReader(space).Read(s)
	if o := h.Measured[1]; o.Violation != 2 || !slices.Equal(o.Violations, []float64{2, -3}) {
		t.Errorf("violations %v, sum %v", o.Violations, o.Violation)
	}
	if o := h.Measured[0]; !math.IsInf(o.Violation, 1) {
		t.Errorf("what was not measured is violated by %v", o.Violation)
	}
}
