package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// attempts are the points of one metric, by attempt, the oldest first.
type attempts [][]collector.Point

// joined is the history of all, as a collector makes it.
func (a attempts) joined() History {
	var all History
	for _, points := range a {
		tally := newTally([]string{"m"})
		for _, p := range points {
			tally.add(p)
		}
		all = all.Then(tally.history())
	}
	return all
}

func (a attempts) series() (all []collector.Series) {
	for n := range a {
		for i := range a[n] {
			a[n][i].Metric, a[n][i].Seq = "m", int64(i)
		}
		all = append(all, collector.Series{Attempt: collector.Attempt{ID: fmt.Sprint("pod/", n), Started: now.Add(time.Duration(n))}, Metric: "m", Points: a[n]})
	}
	return all
}

// diff compares what the store says with what the history does.
func (a attempts) diff() string {
	store := collector.Observe(a.series(), "m")
	history := collector.Observe(Summary{Attempt: collector.Attempt{ID: "pod/9"}, Metrics: a.joined().Metrics()}.Series(), "m")
	history.Points = store.Points
	return cmp.Diff(store, history, nanEqual)
}

func steps(from int64, values ...float64) (points []collector.Point) {
	for i, v := range values {
		points = append(points, collector.Point{Metric: "m", Value: v, Step: from + int64(i)})
	}
	return points
}

func TestAHistoryIsWhatTheStoreSays(t *testing.T) {
	tests := map[string]attempts{
		"the past below the first step counts":  {steps(1, 0.1, 0.2, 0.3, 0.4), steps(3, 1.3)},
		"and of the past nothing else":          {steps(1, 0.9, 0.8, 0.2, 0.1), steps(3, 0.5)},
		"a new beginning":                       {steps(1, 0.1, 9), steps(0, 1, 2)},
		"a past of three":                       {steps(1, 5, 4, 3, 2, 1), steps(4, 7, 6), steps(2, 8)},
		"the one between has gone further back": {steps(1, 5, 4, 3, 2, 1), steps(2, 7, 6), steps(4, 8)},
		"no steps":                              {steps(1, 0.1), {{Value: 2, Step: -1}}},
		"no steps between":                      {steps(1, 0.1, 0.2), {{Value: 2, Step: -1}, {Value: 0.05, Step: 2}}, steps(3, 4)},
		"one point after a past":                {steps(1, 0.1, 7), steps(3, 4)},
		"one whose program printed nothing":     {steps(1, 0.1, 7), nil},
		"a newest without a number":             {steps(1, 0.1, 7), {{Value: math.NaN(), Step: 9, Text: "diverged"}}},
	}
	for name, a := range tests {
		t.Run(name, func(t *testing.T) {
			if d := a.diff(); d != "" {
				t.Errorf("observation (-store +history):\n%s", d)
			}
			if n := a.joined().Near(); n != 0 {
				t.Errorf("%d metrics are not exact, want none", n)
			}
		})
	}
}

func TestAnyHistoryIsWhatTheStoreSays(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 5000 {
		a := make(attempts, 1+random.IntN(4))
		for n := range a {
			a[n] = make([]collector.Point, random.IntN(8))
			base := random.Int64N(6)
			for i := range a[n] {
				p := anyPoint(random, 1)
				if p.Step >= 0 {
					p.Step += base
				}
				if p.Text != "diverged" {
					p.Text = "" // of equal values, the order of reading decides how one is written
				}
				p.Metric = "m"
				a[n][i] = p
			}
		}
		if d := a.diff(); d != "" {
			t.Fatalf("round %d, %+v (-store +history):\n%s", round, a, d)
		}
	}
}

// Of a curve that improves at every step only some values are kept; what may be
// wrong for that is counted.
func TestALongHistoryIsNearAndSaysSo(t *testing.T) {
	const long = 10_000
	values := make([]float64, long)
	for i := range values {
		values[i] = float64(long - i)
	}
	tests := map[string]struct {
		newest   int64
		wantNear int
	}{
		"the newest goes on":      {long + 1, 0},
		"the newest began midway": {long / 2, 1},
		"the newest began anew":   {1, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := attempts{steps(1, values...), steps(tc.newest, long+1)}.joined()
			m := h.metrics["m"]
			if n := len(m.least.records); n > maxStairs {
				t.Errorf("%d records, want at most %d", n, maxStairs)
			}
			if h.Near() != tc.wantNear {
				t.Errorf("%d metrics are near, want %d", h.Near(), tc.wantNear)
			}
			exact := float64(long + 1)
			if tc.newest > 1 {
				exact = long + 2 - float64(tc.newest)
			}
			if got := m.summary.Min.Number; got < exact || got > exact+long/8 {
				t.Errorf("least value %v, want about %v", got, exact)
			}
		})
	}
}
