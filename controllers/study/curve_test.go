package study

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/suggest"
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

func curveOf(attempts ...attempt) []suggest.Sample {
	c := curve{}
	for _, a := range attempts {
		a.hand(c.add)
	}
	return c.samples()
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
		"a second attempt follows the first, which is read later": {
			[]attempt{{"b", 1, "s", collector.NoStep, []float64{3}}, {"a", 0, "s", collector.NoStep, []float64{1, 2}}},
			path(1, 1, 2, 2, 1, 3)},
		"attempts of one moment follow each other by their names": {
			[]attempt{{"b", 0, "s", 1, []float64{2}}, {"a", 0, "s", 1, []float64{1}}}, path(1, 1, 1, 2)},
		"sources of one attempt are put in order of steps": {
			[]attempt{{"a", 0, "s", 1, []float64{1, 2}}, {"a", 0, "t", 1, []float64{8, 9}}},
			path(1, 1, 1, 8, 2, 2, 2, 9)},
		"steps that go back are put in order, those of one step as they came": {
			[]attempt{{"a", 0, "s", 7, []float64{1}}, {"a", 0, "s", 3, []float64{2}}, {"a", 0, "s", 7, []float64{3}}}, path(3, 2, 7, 1, 7, 3)},
		"a point without a step belongs to the step before it in its source": {
			[]attempt{{"a", 0, "s", 5, []float64{1, 2}}, {"a", 0, "s", collector.NoStep, []float64{3}}}, path(5, 1, 6, 2, 6, 3)},
		"points of a source without steps are counted by themselves": {
			[]attempt{{"a", 0, "s", 5, []float64{1, 2}}, {"a", 0, "t", collector.NoStep, []float64{3}}}, path(1, 3, 5, 1, 6, 2)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, curveOf(tc.in...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A long curve keeps points at even places, which stay while it grows, and the
// last one.
func TestLongCurvesAreThinnedAtPlacesThatStay(t *testing.T) {
	c := curve{}
	var before []suggest.Sample
	for n := int64(1); n <= 20*curvePoints; n++ {
		c.add(collector.Attempt{ID: "a"}, collector.Point{Source: "s", Step: n, Value: float64(n)})
		now := c.samples()
		if len(now) > curvePoints || n >= curvePoints && len(now) < curvePoints/2 || n < curvePoints && int64(len(now)) != n {
			t.Fatalf("%d samples of %d points", len(now), n)
		}
		if last := now[len(now)-1]; last.Step != n {
			t.Fatalf("the last of %d points is missing: %v", n, last)
		}
		even := now[:len(now)-1]
		for i := 1; i < len(even); i++ {
			if even[i].Step-even[i-1].Step != even[0].Step {
				t.Fatalf("of %d points, %d and %d are looked at, and the first is %d", n, even[i-1].Step, even[i].Step, even[0].Step)
			}
		}
		if len(before) > 1 && even[0].Step != before[0].Step && even[0].Step != 2*before[0].Step {
			t.Fatalf("with %d points the places moved from %v to %v", n, before[0], even[0])
		}
		before = now
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
		got := curveOf(attempt{"a", 0, "s", 10_000, before}, second)
		if last := got[len(got)-1].Step; last != 10_000+4*curvePoints || len(got) > curvePoints {
			t.Errorf("%s: %d samples, the last of step %d", name, len(got), last)
		}
	}
}

func TestManyAttemptsMakeABoundedCurve(t *testing.T) {
	var all []attempt
	for i := range 40 {
		all = append(all, attempt{id: string(rune('a' + i)), minutes: i, source: "s", first: 1, values: make([]float64, 100)})
	}
	if got := curveOf(all...); len(got) > curvePoints || len(got) < curvePoints/2 || got[len(got)-1].Step != 100 {
		t.Errorf("%d samples, the last %v", len(got), got[len(got)-1])
	}
}
