package algorithm_test

import (
	"context"
	"errors"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

func pointsLieInTheSpace(t *testing.T, r propose.Registration) {
	for _, name := range spaceNames() {
		t.Run(name, func(t *testing.T) {
			a, space := build(t, r, spaces()[name])
			specs := spaces()[name]
			if !reflect.DeepEqual(specSpace(t, specs), space) {
				specs = withSteps(specs)
			}
			s := studyOf(t, a, space, 5, 40)
			if len(s.Trials) == 0 {
				t.Fatal("no proposals")
			}
			for _, trial := range s.Trials {
				if !space.Contains(trial.Point) {
					t.Errorf("trial %d: %v is not in the space", trial.Number, trial.Point)
				}
				assignments := space.Assignments(trial.Point)
				for _, as := range assignments {
					if why := outside(specOf(specs, as.Name), as.Value); why != "" {
						t.Errorf("trial %d: %v is not allowed: %s", trial.Number, as, why)
					}
				}
				for _, spec := range specs {
					if has := valueOf(assignments, spec.Name) != ""; has != active(specs, spec, assignments) {
						t.Errorf("trial %d: %v: %s is set: %v", trial.Number, assignments, spec.Name, has)
					}
				}
				if back, ok := space.Parse(assignments); !ok || !back.Equal(trial.Point) {
					t.Errorf("trial %d: %v reads back as %v, %v", trial.Number, trial.Point, back, ok)
				}
			}
		})
	}
}

func specSpace(t *testing.T, specs []suggest.ParameterSpec) suggest.Space {
	t.Helper()
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func specOf(specs []suggest.ParameterSpec, name string) suggest.ParameterSpec {
	return specs[slices.IndexFunc(specs, func(s suggest.ParameterSpec) bool { return s.Name == name })]
}

func valueOf(assignments []suggest.Assignment, name string) string {
	for _, a := range assignments {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// active says whether a parameter must have a value, without the help of
// package suggest.
func active(specs []suggest.ParameterSpec, spec suggest.ParameterSpec, assignments []suggest.Assignment) bool {
	if spec.When == nil {
		return true
	}
	return active(specs, specOf(specs, spec.When.Parameter), assignments) &&
		slices.Contains(spec.When.In, valueOf(assignments, spec.When.Parameter))
}

// outside says why a value's text is not allowed by what the user wrote, without
// the help of package suggest.
func outside(spec suggest.ParameterSpec, text string) string {
	if spec.Kind == suggest.Categorical || spec.Kind == suggest.Discrete {
		if !slices.Contains(spec.List, text) {
			return "not in the list"
		}
		return ""
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err.Error()
	}
	low, _ := strconv.ParseFloat(spec.Min, 64)
	high, _ := strconv.ParseFloat(spec.Max, 64)
	if !(x >= low && x <= high) {
		return "out of range"
	}
	step, err := strconv.ParseFloat(spec.Step, 64)
	if spec.Kind == suggest.Int {
		if strings.ContainsAny(text, ".e") {
			return "not written as an int"
		}
		if err != nil {
			step, err = 1, nil
		}
	}
	if k := (x - low) / step; err == nil && math.Abs(k-math.Round(k)) > 1e-6 {
		return "between the steps"
	}
	return ""
}

func endsAreReachable(t *testing.T, r propose.Registration) {
	for _, name := range []string{"one double", "one log double", "one int", "mixed", "small", "skewed steps", "small tree"} {
		t.Run(name, func(t *testing.T) {
			a, space := build(t, r, spaces()[name])
			if r.Adaptive {
				asked := 80
				if r.MultiFidelity {
					asked = 600 // of which many are promotions, and the new points may be random
				}
				if r.Evolves {
					asked = 300
				}
				if r.Repeats {
					if name == "mixed" {
						t.Skip("it goes in small steps, and takes too many of them with many parameters")
					}
					asked = 400 // of which most go on unchanged
				}
				findsEnds(t, a, space, asked)
				return
			}
			asked := 400
			if size, finite := space.Size(); finite && size < 1000 {
				asked = int(size) + 1 // to the end
			}
			p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 3), Parallel: 50, Objective: bowl(space)}
			if err := p.Play(t.Context(), asked); err != nil && !errors.Is(err, suggest.ErrExhausted) {
				t.Fatal(err)
			}
			for i := range space.Len() {
				reaches(t, space.At(i), i, p.Study.Trials, asked)
			}
		})
	}
}

// findsEnds holds that an algorithm that learns comes to the first and to the
// last values of all parameters when these are best, within so many trials.
func findsEnds(t *testing.T, a suggest.Algorithm, space suggest.Space, asked int) {
	t.Helper()
	parameters := make([]int, space.Len())
	for i := range parameters {
		parameters[i] = i
	}
	for _, low := range []bool{true, false} {
		best := slices.Repeat([]float64{1}, space.Len())
		p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, 3), Parallel: 2}
		p.Objective = func(_ int, point suggest.Point) float64 {
			sum := 0.0
			for i, v := range point {
				if v.IsSet() {
					far := fromEnd(space.At(i), v, low)
					best[i] = min(best[i], far)
					sum += far
				}
			}
			return sum
		}
		missing := func(i int) bool {
			count, _ := space.At(i).Count()
			return best[i] > 0.1 || count > 0 && count <= 8 && best[i] > 0
		}
		const step = 40
		for n := step; n < asked+step && slices.ContainsFunc(parameters, missing); n += step {
			if err := p.Play(t.Context(), min(n, asked)); err != nil && !errors.Is(err, suggest.ErrExhausted) {
				t.Fatal(err)
			}
		}
		for i, far := range best {
			if missing(i) {
				t.Errorf("%s, low end %v: no trial is nearer than %v", space.At(i).Name(), low, far)
			}
		}
	}
}

// fromEnd is how far a value is from the first or last one, the whole range
// being 1.
func fromEnd(p suggest.Parameter, v suggest.Value, low bool) float64 {
	far := p.Encode(v)
	if count, finite := p.Count(); finite {
		index, _ := v.Index()
		far = float64(index) / float64(max(1, count-1))
		if !low && count == 1 {
			return 0
		}
	}
	if low {
		return far
	}
	return 1 - far
}

// reaches holds that the trials cover the i-th parameter: what the prior
// expects ten times or more must be there, and everything once a finite space
// came to its end.
func reaches(t *testing.T, parameter suggest.Parameter, i int, trials []*suggest.Trial, asked int) {
	t.Helper()
	seen := map[string]bool{}
	least, most := 1.0, 0.0
	for _, trial := range trials {
		if !trial.Point[i].IsSet() {
			continue
		}
		u := parameter.Encode(trial.Point[i])
		least, most = min(least, u), max(most, u)
		seen[trial.Point[i].String()] = true
	}
	count, finite := parameter.Count()
	if !finite {
		if least > 0.02 || most < 0.98 {
			t.Errorf("%s: the proposals lie in [%v, %v] of the unit interval", parameter.Name(), least, most)
		}
		return
	}
	for index := range count {
		low, high := parameter.Cell(index)
		expected := (high-low)*float64(asked) >= 10 || len(trials) < asked
		if v := parameter.At(index); expected && !seen[v.String()] {
			t.Errorf("%s: %v was not proposed in %d trials", parameter.Name(), v, len(trials))
		}
	}
}

func seedDecides(t *testing.T, r propose.Registration) {
	for _, name := range spaceNames() {
		t.Run(name, func(t *testing.T) {
			a, space := build(t, r, spaces()[name])
			b, _ := build(t, r, spaces()[name])
			one, two := studyOf(t, a, space, 1, 20), studyOf(t, b, space, 1, 20)
			if !reflect.DeepEqual(one, two) {
				t.Error("the same seed gave two histories")
			}
			if size, finite := space.Size(); finite && size < 1000 {
				return // two seeds may well agree
			}
			if other := studyOf(t, a, space, 2, 20); one.Trials[0].Point.Equal(other.Trials[0].Point) && one.Trials[1].Point.Equal(other.Trials[1].Point) {
				t.Error("another seed gave the same points")
			}
		})
	}
}

func randomStateDecides(t *testing.T, r propose.Registration) {
	if !slices.ContainsFunc(r.Settings, func(s propose.Setting) bool { return s.Name == "random_state" }) {
		t.Skip("it has no such setting")
	}
	a, space := build(t, r, mixed(), suggest.Setting{Name: "random_state", Value: "7"})
	b, _ := build(t, r, mixed(), suggest.Setting{Name: "random_state", Value: "8"})
	want := lines(space, ask(t, a, suggesttest.NewStudy(space, 1), 5))
	if got := lines(space, ask(t, a, suggesttest.NewStudy(space, 2), 5)); !slices.Equal(got, want) {
		t.Error("the seed matters although random_state is set")
	}
	if got := lines(space, ask(t, b, suggesttest.NewStudy(space, 1), 5)); slices.Equal(got, want) {
		t.Error("another random_state gives the same points")
	}
}

func manyEqualsOneByOne(t *testing.T, r propose.Registration) {
	if r.Adaptive {
		t.Skip("it learns from results")
	}
	for _, name := range spaceNames() {
		t.Run(name, func(t *testing.T) {
			a, space := build(t, r, spaces()[name])
			for _, already := range []int{0, 9} {
				s := studyOf(t, a, space, 4, already)
				want := ask(t, a, s, 25)
				var got []suggest.Proposal
				for range 25 {
					one := ask(t, a, s, 1)
					got = append(got, one...)
					s.Put(suggest.PendingTrials(s.NextNumber(), one)...)
				}
				if g, w := lines(space, got), lines(space, want); !slices.Equal(g, w) {
					t.Errorf("after %d trials: one by one gives %v, at once %v", already, g, w)
				}
			}
		})
	}
}

func goroutinesAgree(t *testing.T, r propose.Registration) {
	a, space := build(t, r, mixed())
	s := studyOf(t, a, space, 6, 15)
	want := lines(space, ask(t, a, s, 4))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := a.Suggest(t.Context(), s, 4)
			if err != nil || !slices.Equal(lines(space, got), want) {
				t.Errorf("got %v, %v, want %v", lines(space, got), err, want)
			}
		})
	}
	group.Wait()
}

func studyIsNotModified(t *testing.T, r propose.Registration) {
	a, space := build(t, r, mixed())
	b, _ := build(t, r, mixed())
	s, same := studyOf(t, a, space, 6, 15), studyOf(t, b, space, 6, 15)
	got := ask(t, a, s, 4)
	if !reflect.DeepEqual(s, same) {
		t.Error("the study was modified")
	}
	for i := range got {
		clear(got[i].Point)
		clear(got[i].Meta)
	}
	if !reflect.DeepEqual(s, same) {
		t.Error("a proposal shares memory with the study")
	}
	if again := ask(t, a, s, 4); slices.ContainsFunc(again, func(p suggest.Proposal) bool { return !space.Contains(p.Point) }) {
		t.Error("a proposal shares memory with the algorithm")
	}
}

func cancelledContextReturns(t *testing.T, r propose.Registration) {
	a, space := build(t, r, mixed())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := a.Suggest(ctx, suggesttest.NewStudy(space, 1), 1<<40)
	if !errors.Is(err, context.Canceled) || len(got) > 0 {
		t.Errorf("got %d proposals and %v, want none and %v", len(got), err, context.Canceled)
	}
}

func noneGivesNone(t *testing.T, r propose.Registration) {
	a, space := build(t, r, mixed())
	for _, n := range []int{0, -1} {
		if got, err := a.Suggest(t.Context(), suggesttest.NewStudy(space, 1), n); err != nil || len(got) != 0 {
			t.Errorf("asking for %d gives %d and %v", n, len(got), err)
		}
	}
}

func wrongSettingsAreNamed(t *testing.T, r propose.Registration) {
	space := specSpace(t, withSteps(mixed()))
	wrong := []string{"", "no such value", "-1e999", "NaN", "9999999999999999999999"}
	suggesttest.SettingsAreNamed(t, r.Settings, wrong, func(settings suggest.Settings) error {
		_, err := r.New(space, settings)
		return err
	})
}
