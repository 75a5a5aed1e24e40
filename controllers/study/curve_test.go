package study

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// attempt is an attempt that started some minutes after noon, and the points of a
// source in it: of the steps, or without any.
type attempt struct {
	id      string
	minutes int
	source  string
	first   int64
	values  []float64
}

func (a attempt) hand(over func(collector.Attempt, collector.Point)) {
	for i, v := range a.values {
		step := collector.NoStep
		if a.first != collector.NoStep {
			step = a.first + int64(i)
		}
		over(collector.Attempt{ID: a.id, Started: noon.Add(time.Duration(a.minutes) * time.Minute)},
			collector.Point{Source: a.source, Value: v, Step: step})
	}
}

// curveOf is the curve of a trial that has ended, whose store has the attempts, the
// newest first.
func curveOf(t *testing.T, attempts ...attempt) []suggest.Sample {
	t.Helper()
	return curveIn(t, suggest.Succeeded, attempts...)
}

// curveIn is the curve of a trial in a state.
func curveIn(t *testing.T, state suggest.State, attempts ...attempt) []suggest.Sample {
	t.Helper()
	s := Study{base: suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}}}
	seq := int64(0)
	e := entry{trial: &suggest.Trial{State: state}}
	err := s.readCurve(t.Context(), func(_ context.Context, _ string, _ []string, yield func(collector.Attempt, collector.Point) error) error {
		var all error
		for _, a := range attempts {
			a.hand(func(a collector.Attempt, p collector.Point) {
				seq++
				p.Seq = seq
				all = errors.Join(all, yield(a, p))
			})
		}
		return all
	}, &e)
	if err != nil {
		t.Fatal(err)
	}
	return e.trial.Curve
}

// path is a curve of steps and values.
func path(pairs ...int64) (out []suggest.Sample) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, suggest.Sample{Step: pairs[i], Value: float64(pairs[i+1])})
	}
	return out
}

func TestCurve(t *testing.T) {
	tests := map[string]struct {
		in   []attempt
		want []suggest.Sample
	}{
		"nothing":              {nil, nil},
		"steps as reported":    {[]attempt{{"a", 0, "s", 5, []float64{1, 2}}}, path(5, 1, 6, 2)},
		"counted without step": {[]attempt{{"a", 0, "s", collector.NoStep, []float64{1, 2}}}, path(1, 1, 2, 2)},
		"an attempt without steps replaces an older one": {
			[]attempt{{"b", 1, "s", collector.NoStep, []float64{3}}, {"a", 0, "s", collector.NoStep, []float64{1, 2}}},
			path(1, 3)},
		"an attempt that began anew replaces an older one": {
			[]attempt{{"b", 1, "s", 1, []float64{3}}, {"a", 0, "s", 1, []float64{1, 2}}}, path(1, 3)},
		"an attempt that goes on from a checkpoint keeps what was before it": {
			[]attempt{{"b", 1, "s", 2, []float64{3, 4}}, {"a", 0, "s", 0, []float64{0, 1, 2}}}, path(0, 0, 1, 1, 2, 3, 3, 4)},
		"sources of one attempt are put in order of steps": {
			[]attempt{{"a", 0, "s", 1, []float64{1, 2}}, {"a", 0, "t", 2, []float64{8, 9}}},
			path(1, 1, 2, 8, 3, 9)},
		"steps that go back are put in order, and the last of one step counts": {
			[]attempt{{"a", 0, "s", 7, []float64{1}}, {"a", 0, "s", 3, []float64{2}}, {"a", 0, "s", 7, []float64{3}}}, path(3, 2, 7, 3)},
		"a point without a step belongs to the step before it in its source": {
			[]attempt{{"a", 0, "s", 5, []float64{1, 2}}, {"a", 0, "s", collector.NoStep, []float64{3}}}, path(5, 1, 6, 3)},
		"points of no step are left out where others have steps": {
			[]attempt{{"a", 0, "s", 5, []float64{1, 2}}, {"a", 0, "t", collector.NoStep, []float64{3}}}, path(5, 1, 6, 2)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, curveOf(t, tc.in...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A step of several points counts for the rules that stop trials when it has as many
// as the one before it: until then it would be compared with the ends of others' steps.
func TestAStepThatGoesOnDoesNotCountYet(t *testing.T) {
	batches := func(epoch int64, values ...float64) (out []attempt) {
		for _, v := range values {
			out = append(out, attempt{"a", 0, "s", epoch, []float64{v}})
		}
		return out
	}
	for name, tc := range map[string]struct {
		in   []attempt
		want []suggest.Sample
	}{
		"the first step":          {batches(1, 9, 8), path(1, 8)},
		"within the second":       {slices.Concat(batches(1, 9, 8, 7), batches(2, 6, 5)), path(1, 7)},
		"at its end":              {slices.Concat(batches(1, 9, 8, 7), batches(2, 6, 5, 4)), path(1, 7, 2, 4)},
		"the next has begun":      {slices.Concat(batches(1, 9, 8, 7), batches(2, 6, 5), batches(3, 4)), path(1, 7, 2, 5)},
		"one value in each":       {slices.Concat(batches(1, 9), batches(2, 8)), path(1, 9, 2, 8)},
		"stretches of a long one": {[]attempt{{"a", 0, "s", 1, make([]float64, 4*curvePoints)}}, nil},
	} {
		got := curveIn(t, suggest.Running, tc.in...)
		if tc.want == nil {
			tc.want = curveOf(t, tc.in...)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What Hugging Face's Trainer prints states an epoch, which is no step until it is whole: the
// n-th value of the first epoch is no measure beside what others had after n epochs.
func TestATrialThatStatesNoStepYetIsNotComparedWithSteps(t *testing.T) {
	curves := map[string]attempt{
		"a": {"x", 0, "s", 1, []float64{3, 2, 1}}, "b": {"x", 0, "s", 1, []float64{3, 2, 1}},
		"within its first epoch": {"x", 0, "s", collector.NoStep, []float64{9, 8}},
		"ended within it":        {"x", 0, "s", collector.NoStep, []float64{0.1}},
		"bad at its first":       {"x", 0, "s", 1, []float64{9}},
		"good at its first":      {"x", 0, "s", 1, []float64{2}},
	}
	r, _ := stop.Get("asha")
	rule, err := r.New(suggest.Settings{{Name: "r_max", Value: "3"}})
	if err != nil {
		t.Fatal(err)
	}
	s := Study{base: suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}}, stopper: rule}
	for n, name := range slices.Sorted(maps.Keys(curves)) {
		e := entry{uid: types.UID(name), object: &v1beta1.Trial{}, trial: &suggest.Trial{Number: n, State: suggest.Running}}
		e.object.Name = name
		switch name {
		case "a", "b":
			e.trial.State = suggest.Succeeded
		case "ended within it":
			e.trial.State = suggest.Pruned
		}
		s.trials.entries = append(s.trials.entries, e)
	}
	s.trials.refresh()
	stops, spared, err := s.Judge(t.Context(), func(_ context.Context, uid string, _ []string, yield func(collector.Attempt, collector.Point) error) (all error) {
		seq := int64(0)
		curves[uid].hand(func(a collector.Attempt, p collector.Point) {
			seq++
			p.Seq = seq
			all = errors.Join(all, yield(a, p))
		})
		return all
	})
	if err != nil || len(stops) != 1 || stops[0].Trial.Name != "bad at its first" || spared != 2 {
		t.Errorf("stops %v, %d go on, %v", stops, spared, err)
	}
}

// A long curve keeps points at even places, which stay while it grows, and the
// last one.
func TestLongCurvesAreThinnedAtPlacesThatStay(t *testing.T) {
	places := map[int64]bool{}
	for n := 1; n <= 20*curvePoints; n += 97 {
		now := curveOf(t, attempt{"a", 0, "s", 0, make([]float64, n)})
		if len(now) > curvePoints || n >= curvePoints && len(now) < curvePoints/2 || n < curvePoints && len(now) != n {
			t.Fatalf("%d samples of %d points", len(now), n)
		}
		if last := now[len(now)-1]; last.Step != int64(n)-1 {
			t.Fatalf("the last of %d points is missing: %v", n, last)
		}
		even := now[:len(now)-1]
		for i, p := range even {
			if i > 1 && p.Step-even[i-1].Step != even[1].Step-even[0].Step {
				t.Fatalf("of %d points, %d and %d are looked at, and the first are %d and %d", n, even[i-1].Step, p.Step, even[0].Step, even[1].Step)
			}
			if n > curvePoints && !places[p.Step] && p.Step < int64(n)-97-int64(n)/64 {
				t.Fatalf("with %d points a place was added at %d", n, p.Step)
			}
		}
		for _, p := range even {
			places[p.Step] = true
		}
	}
}

// Settings that are numbers of reports mean those of the program, not the places that a
// long curve is looked at.
func TestRulesCountTheReportsOfLongCurves(t *testing.T) {
	for name, c := range map[string]struct {
		rule     string
		settings suggest.Settings
		improves int // from 1 to 0 at this report of 1000
		want     bool
	}{
		"patience has run out":             {"patience", suggest.Settings{{Name: "patience", Value: "300"}}, 600, true},
		"patience has not run out":         {"patience", suggest.Settings{{Name: "patience", Value: "300"}}, 750, false},
		"a short patience has run out":     {"patience", suggest.Settings{{Name: "patience", Value: "20"}}, 950, true},
		"there are more than start_step":   {"threshold", suggest.Settings{{Name: "upper", Value: "-1"}, {Name: "start_step", Value: "900"}}, 1, true},
		"there are no more than that many": {"threshold", suggest.Settings{{Name: "upper", Value: "-1"}, {Name: "start_step", Value: "1100"}}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			registered, _ := stop.Get(c.rule)
			rule, err := registered.New(c.settings)
			if err != nil {
				t.Fatal(err)
			}
			values := make([]float64, 1000)
			for i := range c.improves {
				values[i] = 1
			}
			trial := &suggest.Trial{State: suggest.Running, Curve: curveOf(t, attempt{"a", 0, "s", 1, values})}
			s := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}, Trials: []*suggest.Trial{trial}}
			if got, why := rule.Stop(s, trial); got != c.want {
				t.Errorf("stops: %v (%s)", got, why)
			}
		})
	}
}

// Who asks how far a trial has come looks at the end of its curve, whatever came
// after the point with the greatest step.
func TestLongCurvesEndWithTheGreatestStep(t *testing.T) {
	before, after := make([]float64, 4*curvePoints+1), make([]float64, 3*curvePoints+2)
	for name, second := range map[string]attempt{
		"steps that go back": {"a", 0, "s", 1, after},
		"another source":     {"a", 0, "t", 1, after},
		"no steps":           {"a", 0, "s", collector.NoStep, after},
	} {
		got := curveOf(t, attempt{"a", 0, "s", 10_000, before}, second)
		if last := got[len(got)-1].Step; last != 10_000+4*curvePoints || len(got) > curvePoints {
			t.Errorf("%s: %d samples, the last of step %d", name, len(got), last)
		}
	}
}

// Nor is a trial within its first step, where the first steps of others have several values.
func TestATrialWithinItsFirstStepIsNotComparedWithTheEndsOfOthers(t *testing.T) {
	curve := func(state suggest.State, first int64, samples ...int64) entry {
		return entry{trial: &suggest.Trial{State: state, Curve: path(samples...)}, stepped: true, first: first, beyond: len(samples) > 2}
	}
	within := curve(suggest.Running, 3, 1, 6) // the second step, of which nothing counts yet
	within.beyond = true
	for name, tc := range map[string]struct {
		entries []entry
		want    []int // lengths of the curves
	}{
		"others are beyond theirs": {[]entry{
			curve(suggest.Succeeded, 10, 1, 5, 2, 4), curve(suggest.Running, 3, 1, 6), curve(suggest.Running, 10, 1, 6),
			curve(suggest.Running, 5, 1, 6, 2, 5), curve(suggest.Pruned, 2, 1, 9), curve(suggest.Running, 20, 1, 6),
		}, []int{2, 0, 1, 2, 1, 1}},
		"none is":                      {[]entry{curve(suggest.Running, 3, 1, 6), curve(suggest.Running, 1, 1, 6)}, []int{0, 0}},
		"the next has begun":           {[]entry{within, curve(suggest.Running, 2, 1, 6), curve(suggest.Running, 3, 1, 6)}, []int{1, 0, 1}},
		"fewer points in a first step": {[]entry{within, curve(suggest.Succeeded, 9, 1, 5, 2, 4)}, []int{1, 2}},
		"one value in each":            {[]entry{curve(suggest.Running, 1, 1, 6), curve(suggest.Running, 1, 1, 6)}, []int{1, 1}},
		"a program that has one step":  {[]entry{curve(suggest.Succeeded, 9, 0, 6), curve(suggest.Running, 3, 0, 6)}, []int{1, 1}},
	} {
		var got []int
		for _, trial := range together(tc.entries) {
			got = append(got, len(trial.Curve))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: lengths of curves (-want +got):\n%s", name, diff)
		}
	}
}
