package collector

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// attempt returns the nth attempt.
func attempt(n int) Attempt {
	return Attempt{ID: string(rune('a' + n)), Started: start.Add(time.Duration(n) * time.Hour)}
}

// curve returns a series of loss with a value at each step from first on.
func curve(n int, first int64, values ...float64) Series {
	s := Series{Attempt: attempt(n), Metric: "loss"}
	for i, v := range values {
		s.Points = append(s.Points, Point{Metric: "loss", Value: v, Step: first + int64(i), Source: "stdout", Seq: int64(i * 10)})
	}
	return s
}

func stepless(n int, values ...float64) Series {
	s := curve(n, 0, values...)
	for i := range s.Points {
		s.Points[i].Step = NoStep
	}
	return s
}

func texts(s Series, texts ...string) Series {
	for i, text := range texts {
		s.Points[i].Text = text
	}
	return s
}

func TestObserve(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string]struct {
		series           []Series
		min, max, latest string
		points           int
	}{
		"a metric never seen is unavailable": {
			min: "unavailable", max: "unavailable", latest: "unavailable",
		},
		"another metric is another metric": {
			series: []Series{{Attempt: attempt(0), Metric: "val_loss", Points: curve(0, 0, 1).Points}},
			min:    "unavailable", max: "unavailable", latest: "unavailable",
		},
		"one curve": {
			series: []Series{curve(0, 0, 3, 1, 2)},
			min:    "1", max: "3", latest: "2", points: 3,
		},
		"values keep the text that was written": {
			series: []Series{texts(curve(0, 0, 3, 1, 2), "3.00", "+1", "2e0")},
			min:    "+1", max: "3.00", latest: "2e0", points: 3,
		},
		"of equal values the first is kept": {
			series: []Series{texts(curve(0, 0, 1, 1), "1.0", "1.00")},
			min:    "1.0", max: "1.0", latest: "1.00", points: 2,
		},
		"a leading NaN freezes nothing": {
			series: []Series{curve(0, 0, nan, 3, 1)},
			min:    "1", max: "3", latest: "1", points: 3,
		},
		"a last NaN is the latest": {
			series: []Series{curve(0, 0, 3, 1, nan)},
			min:    "1", max: "3", latest: "NaN", points: 3,
		},
		"infinities are not best": {
			series: []Series{curve(0, 0, inf, 3, -inf, 1)},
			min:    "1", max: "3", latest: "1", points: 4,
		},
		"infinities where there is nothing else": {
			series: []Series{curve(0, 0, nan, inf, -inf)},
			min:    "-Inf", max: "+Inf", latest: "-Inf", points: 3,
		},
		"NaN where there is nothing else": {
			series: []Series{texts(curve(0, 0, nan, nan), "nan", "")},
			min:    "nan", max: "nan", latest: "NaN", points: 2,
		},
		"texts that are not numbers have a latest only": {
			series: []Series{texts(curve(0, 0, nan, nan), "good", "bad")},
			min:    "unavailable", max: "unavailable", latest: "bad", points: 2,
		},
		"points out of order": {
			series: []Series{{Attempt: attempt(0), Metric: "loss", Points: []Point{
				{Value: 9, Step: 7, Seq: 70}, {Value: 5, Step: 2, Seq: 20}, {Value: 6, Step: 7, Seq: 60},
			}}},
			min: "5", max: "9", latest: "9", points: 3,
		},
		"a step reported again later counts by its place": {
			series: []Series{{Attempt: attempt(0), Metric: "loss", Points: []Point{
				{Value: 1, Step: 1, Seq: 10}, {Value: 2, Step: 1, Seq: 20},
			}}},
			min: "1", max: "2", latest: "2", points: 2,
		},
		"a last line without a step belongs to the last step": {
			series: []Series{{Attempt: attempt(0), Metric: "loss", Points: []Point{
				{Value: 8, Step: NoStep, Seq: 30}, {Value: 1, Step: 1, Seq: 10}, {Value: 2, Step: 2, Seq: 20},
			}}},
			min: "1", max: "8", latest: "8", points: 3,
		},
		"training that began anew leaves its past": {
			series: []Series{curve(0, 0, 0.1, 0.2), curve(1, 0, 3, 4)},
			min:    "3", max: "4", latest: "4", points: 2,
		},
		"training that resumed keeps its past below the checkpoint": {
			series: []Series{curve(0, 0, 9, 8, 0.1), curve(1, 2, 5, 4)},
			min:    "4", max: "9", latest: "4", points: 4,
		},
		"three attempts, each resumed": {
			series: []Series{curve(2, 1, 6), curve(0, 0, 9, 0.1, 0.1), curve(1, 1, 0.2, 0.2)},
			min:    "6", max: "9", latest: "6", points: 2,
		},
		"an attempt without steps replaces earlier ones": {
			series: []Series{curve(0, 0, 9, 8), stepless(1, 5, 4)},
			min:    "4", max: "5", latest: "4", points: 2,
		},
		"an earlier attempt without steps is replaced": {
			series: []Series{stepless(0, 9, 8), curve(1, 3, 5, 4)},
			min:    "4", max: "5", latest: "4", points: 2,
		},
		"two series of one attempt do not share steps": {
			series: []Series{curve(0, 5, 3), stepless(0, 4, 2)},
			min:    "2", max: "4", latest: "3", points: 3,
		},
		"a newest attempt that reported nothing does not count": {
			series: []Series{curve(0, 0, 9, 8), curve(1, 0)},
			min:    "8", max: "9", latest: "8", points: 2,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Observe(tc.series, "loss")
			type texts struct {
				Min, Max, Latest string
				Points           int
			}
			want := texts{tc.min, tc.max, tc.latest, tc.points}
			if diff := cmp.Diff(want, texts{got.Min.Text, got.Max.Text, got.Latest.Text, got.Points}); diff != "" {
				t.Errorf("observation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObserveLeavesItsInputAlone(t *testing.T) {
	series := []Series{curve(1, 0, 2, 1), curve(0, 0, 4, 3)}
	before := []Series{curve(1, 0, 2, 1), curve(0, 0, 4, 3)}
	Observe(series, "loss")
	if diff := cmp.Diff(before, series); diff != "" {
		t.Errorf("series (-before +after):\n%s", diff)
	}
}

func TestReduceByStrategy(t *testing.T) {
	series := []Series{curve(0, 0, 3, 1, 2)}
	tests := map[string]struct {
		series []Series
		by     Strategy
		want   Measure
		ok     bool
	}{
		"min":                            {series, StrategyMin, Measure{1, "1"}, true},
		"max":                            {series, StrategyMax, Measure{3, "3"}, true},
		"latest":                         {series, StrategyLatest, Measure{2, "2"}, true},
		"an unknown strategy":            {series, "median", Measure{math.NaN(), Unavailable}, false},
		"nothing to reduce":              {nil, StrategyMin, Measure{math.NaN(), Unavailable}, false},
		"NaN is a value, not an absence": {[]Series{curve(0, 0, math.NaN())}, StrategyMin, Measure{math.NaN(), "NaN"}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := Reduce(tc.series, "loss", tc.by)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" || ok != tc.ok {
				t.Errorf("ok %v, want %v; measure (-want +got):\n%s", ok, tc.ok, diff)
			}
		})
	}
}

func TestOnlyFiniteMeasuresCompare(t *testing.T) {
	for v, want := range map[float64]bool{1: true, 0: true, math.Inf(1): false, math.Inf(-1): false, math.NaN(): false} {
		if got := (Measure{Value: v}).Finite(); got != want {
			t.Errorf("Finite of %v is %v", v, got)
		}
	}
}
