package collector

import (
	"context"
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

// at sets the times of points, in seconds.
func at(s Series, seconds ...int) Series {
	for i, n := range seconds {
		s.Points[i].Time = start.Add(time.Duration(n) * time.Second)
	}
	return s
}

func texts(s Series, texts ...string) Series {
	for i, text := range texts {
		s.Points[i].Text = text
	}
	return s
}

// reduce is Reduce over series in memory.
func reduce(series []Series, asks ...Ask) []Observation {
	observations, err := Reduce(context.Background(), Curves(series), "", asks...)
	if err != nil {
		panic(err)
	}
	return observations
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
		"without steps the latest is the one of the latest time, as in Katib": {
			series: []Series{at(stepless(0, 3, 4, 2), 10, 30, 20)},
			min:    "2", max: "4", latest: "4", points: 3,
		},
		"with steps times do not matter": {
			series: []Series{at(curve(0, 0, 3, 4, 2), 10, 30, 20)},
			min:    "2", max: "4", latest: "2", points: 3,
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
	nan, inf := math.NaN(), math.Inf(1)
	series := []Series{texts(curve(0, 0, 3, 1, 2), "3.0", "1.0", "2.0")}
	twice := []Series{curve(0, 0, 9, 8, 0.1), curve(1, 2, 5, 4)}
	tests := map[string]struct {
		series []Series
		by     Strategy
		want   Measure
	}{
		"min":                                    {series, StrategyMin, Measure{1, "1.0"}},
		"max":                                    {series, StrategyMax, Measure{3, "3.0"}},
		"latest":                                 {series, StrategyLatest, Measure{2, "2.0"}},
		"none":                                   {series, "", missing()},
		"an unknown strategy":                    {series, "median", missing()},
		"nothing to reduce":                      {nil, StrategyMin, missing()},
		"NaN is a value, not an absence":         {[]Series{curve(0, 0, nan)}, StrategyMin, Measure{nan, "NaN"}},
		"the mean of the last two":               {series, "mean-last-2", Measure{1.5, "1.5"}},
		"the mean of one is a number":            {series, "mean-last-1", Measure{2, "2"}},
		"the mean of fewer than there should be": {series, "mean-last-1000", Measure{2, "2"}},
		"the mean of nothing":                    {nil, "mean-last-5", missing()},
		"a mean goes back before a checkpoint":   {twice, "mean-last-3", Measure{17.0 / 3, "5.666666666666667"}},
		"a mean leaves out what is not finite":   {[]Series{curve(0, 0, 7, 1, nan, inf, 3)}, "mean-last-4", Measure{2, "2"}},
		"a mean of what is not finite is latest": {[]Series{curve(0, 0, 7, 1, nan, inf)}, "mean-last-2", Measure{inf, "+Inf"}},
		"a text takes a place in a mean": {[]Series{texts(curve(0, 0, 4, 2, nan), "", "", "bad")},
			"mean-last-2", Measure{2, "2"}},
		"a mean does not overflow": {[]Series{curve(0, 0, math.MaxFloat64, math.MaxFloat64)},
			"mean-last-2", Measure{math.MaxFloat64, "1.7976931348623157e+308"}},
		"a mean of steps out of order": {[]Series{{Attempt: attempt(0), Metric: "loss", Points: []Point{
			{Value: 9, Step: 7, Seq: 10}, {Value: 5, Step: 2, Seq: 20}, {Value: 6, Step: 7, Seq: 30},
		}}}, "mean-last-2", Measure{7.5, "7.5"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := reduce(tc.series, Ask{Metric: "loss", Strategy: tc.by})[0].Chosen
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("measure (-want +got):\n%s", diff)
			}
		})
	}
}

func named(metric string, s Series) Series {
	s.Metric = metric
	return s
}

func TestBestAtStep(t *testing.T) {
	nan := math.NaN()
	best := curve(0, 0, 3, 1, 2)
	sparse := named("accuracy", Series{Attempt: attempt(0), Points: []Point{
		{Value: 0.5, Step: 0, Seq: 5}, {Value: 0.7, Step: 2, Seq: 45}, {Value: 0.6, Step: 2, Seq: 50},
	}})
	tests := map[string]struct {
		series   []Series
		maximize bool
		want     Measure
	}{
		"the value at the step":                   {[]Series{best, named("accuracy", curve(0, 0, 0.5, 0.6, 0.7))}, false, Measure{0.6, "0.6"}},
		"at the greatest objective":               {[]Series{best, named("accuracy", curve(0, 0, 0.5, 0.6, 0.7))}, true, Measure{0.5, "0.5"}},
		"the one before, where the step has none": {[]Series{best, sparse}, false, Measure{0.5, "0.5"}},
		"the last one of several at the step":     {[]Series{curve(0, 0, 3, 2, 1), sparse}, false, Measure{0.6, "0.6"}},
		"unavailable, where none is before":       {[]Series{best, named("accuracy", curve(0, 2, 0.7))}, false, missing()},
		"unavailable without an objective":        {[]Series{named("accuracy", curve(0, 0, 0.7))}, false, missing()},
		"unavailable without a finite objective":  {[]Series{curve(0, 0, nan, math.Inf(-1)), named("accuracy", curve(0, 0, 0.7, 0.8))}, false, missing()},
		"unavailable without steps":               {[]Series{stepless(0, 3, 1), named("accuracy", stepless(0, 0.7, 0.8))}, false, missing()},
		"unavailable where only another attempt has it": {[]Series{curve(0, 0, 3, 2), curve(1, 2, 1),
			named("accuracy", curve(0, 0, 0.7, 0.8))}, false, missing()},
		"of the attempt that was best": {[]Series{curve(0, 0, 3, 1), curve(1, 2, 2),
			named("accuracy", curve(0, 0, 0.7, 0.8)), named("accuracy", curve(1, 2, 0.9))}, false, Measure{0.8, "0.8"}},
		"of equal ones the newest attempt": {[]Series{curve(0, 0, 3, 1), curve(1, 2, 1),
			named("accuracy", curve(0, 0, 0.7, 0.8)), named("accuracy", curve(1, 2, 0.9))}, false, Measure{0.9, "0.9"}},
		"a NaN at the step is what it is": {[]Series{best, named("accuracy", curve(0, 0, 0.5, nan))}, false, Measure{nan, "NaN"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := reduce(tc.series, Ask{Metric: "accuracy", Strategy: StrategyBestAtStep, Objective: "loss", Maximize: tc.maximize})[0]
			if diff := cmp.Diff(tc.want, got.Chosen, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("measure (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the objective itself is its best", func(t *testing.T) {
		got := reduce([]Series{stepless(0, 3, 1, 2)}, Ask{Metric: "loss", Strategy: StrategyBestAtStep, Objective: "loss"})[0]
		if diff := cmp.Diff(Measure{1, "1"}, got.Chosen); diff != "" {
			t.Errorf("measure (-want +got):\n%s", diff)
		}
	})
}

func TestTheNumberOfALastMean(t *testing.T) {
	for s, want := range map[Strategy]int{
		"mean-last-7": 7, "mean-last-1": 1, "mean-last-1000": 1000,
		"": 0, "min": 0, "best-at-step": 0, "mean-last-": 0, "mean-last-0": 0, "mean-last-1001": 0,
		"mean-last-05": 0, "mean-last-+5": 0, "mean-last--5": 0, "mean-last-99999999999999999999": 0,
	} {
		if k := s.MeanLast(); k != want {
			t.Errorf("K of %q is %d, want %d", s, k, want)
		}
	}
}

func TestOnlyFiniteMeasuresCompare(t *testing.T) {
	for v, want := range map[float64]bool{1: true, 0: true, math.Inf(1): false, math.Inf(-1): false, math.NaN(): false} {
		if got := (Measure{Value: v}).Finite(); got != want {
			t.Errorf("Finite of %v is %v", v, got)
		}
	}
}
