package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// observed is what the store and the summary say of points in order of reading.
func observed(t *testing.T, points []collector.Point) (store, summary collector.Observation) {
	t.Helper()
	tally := newTally([]string{"m"})
	for i := range points {
		points[i].Metric, points[i].Seq = "m", int64(i)
		tally.add(points[i])
	}
	attempt := collector.Attempt{ID: "pod/0", Started: now}
	b, err := Summary{Attempt: attempt, Metrics: tally.list()}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSummary(string(b))
	if err != nil {
		t.Fatal(err)
	}
	ask := collector.Ask{Metric: "m"}
	store = collector.Reduce([]collector.Series{{Attempt: attempt, Metric: "m", Points: points}}, ask)[0]
	summary = collector.Reduce(s.Series(), ask)[0]
	summary.Points = store.Points
	return store, summary
}

func TestTheLastOfASummaryIsTheStores(t *testing.T) {
	tests := map[string]struct {
		points []collector.Point
		want   float64
	}{
		"a step that goes back is handed on": {[]collector.Point{{Value: 0.9, Step: 40}, {Value: 0.1, Step: 0}, {Value: 0.5, Step: -1}}, 0.9},
		"no step before the first one": {
			[]collector.Point{{Value: 0.9, Step: -1}, {Value: 0.1, Step: 2}, {Value: 0.7, Step: 1}, {Value: 0.5, Step: -1}}, 0.1},
		"a step is not handed to another source": {
			[]collector.Point{{Value: 0.9, Step: 3, Source: "a"}, {Value: 0.1, Step: -1, Source: "b"}, {Value: 0.5, Step: -1, Source: "a"}}, 0.5},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			store, summary := observed(t, tc.points)
			if store.Latest.Value != tc.want || summary.Latest.Value != tc.want {
				t.Errorf("latest: store %v, summary %v, want %v", store.Latest, summary.Latest, tc.want)
			}
		})
	}
}

// Any points give the same of the summary as of the store.
func TestASummaryIsWhatTheStoreSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		sources := 1 + random.IntN(3)
		points := make([]collector.Point, 1+random.IntN(12))
		for i := range points {
			points[i] = anyPoint(random, sources)
		}
		store, summary := observed(t, points)
		if d := cmp.Diff(store, summary, nanEqual); d != "" {
			t.Fatalf("round %d, %+v (-store +summary):\n%s", round, points, d)
		}
	}
}

func anyPoint(random *rand.Rand, sources int) collector.Point {
	p := collector.Point{Value: float64(random.IntN(8)), Step: int64(random.IntN(6)) - 1, Source: fmt.Sprintf("file:%d", random.IntN(sources))}
	switch random.IntN(12) {
	case 0:
		p.Value = math.NaN()
	case 1:
		p.Value = math.Inf(1 - 2*random.IntN(2))
	case 2:
		p.Value, p.Text = math.NaN(), "diverged"
	case 3:
		p.Text = fmt.Sprintf("%.2f", p.Value)
	}
	if sources > 1 && p.Text != "diverged" {
		p.Text = "" // of equal values, the order of reading decides how one is written
	}
	return p
}

func TestASummarySaysHowManyMetricsDidNotFit(t *testing.T) {
	tests := map[string]struct {
		metrics  int
		note     string
		wantNote string // with the number left out
	}{
		"all fit":                  {3, "x", "x"},
		"many, and all is well":    {301, "", "%d more metrics did not fit"},
		"many, and all is not":     {301, "3 points were refused: why", "3 points were refused: why; %d more metrics did not fit"},
		"as many as are summed up": {1000, "", "%d more metrics did not fit"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tally := newTally(nil)
			for i := range tc.metrics {
				tally.add(collector.Point{Metric: fmt.Sprintf("metric-%03d", i), Value: float64(i) / 7, Step: int64(i)})
			}
			b, err := Summary{Attempt: collector.Attempt{ID: "pod/0"}, Metrics: tally.list(), Note: tc.note}.Marshal()
			if err != nil || len(b) > MaxSummary {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			s, err := ParseSummary(string(b))
			if err != nil {
				t.Fatal(err)
			}
			want := tc.wantNote
			if left := tc.metrics - len(s.Metrics); left > 0 {
				want = fmt.Sprintf(want, left)
			}
			if s.Note != want {
				t.Errorf("note %q with %d of %d metrics, want %q", s.Note, len(s.Metrics), tc.metrics, want)
			}
		})
	}
}
