package contract

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

var (
	now      = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	nanEqual = cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })
)

func summaryOf(points ...collector.Point) Summary {
	var g collector.Aggregator
	for i, p := range points {
		p.Metric, p.Seq = "m", int64(i)
		g.Add(collector.Attempt{}, p)
	}
	s := Summary{Attempt: collector.Attempt{ID: "pod/0", Started: now}}
	if m, ok := Summarize("m", &g); ok {
		s.Metrics = append(s.Metrics, m)
	}
	return s
}

// The summary must say what the store's points would have said.
func TestASummaryReducesAsItsPointsDo(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := map[string][]collector.Point{
		"one point":              {{Value: 1, Step: 3}},
		"sources that alternate": {{Value: 0.9, Step: 3, Source: "a"}, {Value: 0.1, Step: -1, Source: "b"}, {Value: 0.5, Step: -1, Source: "a"}},
		"without steps":          {{Value: 2, Step: -1}, {Value: 1, Step: -1}, {Value: 3, Step: -1, Text: "3.0"}},
		"steps out of order":     {{Value: 1, Step: 5}, {Value: 2, Step: 1}, {Value: 0.5, Step: 3, Text: "0.50"}},
		"no step after steps":    {{Value: 1, Step: 5}, {Value: 2, Step: -1}},
		"NaN first":              {{Value: nan, Step: 1}, {Value: 2, Step: 2}, {Value: 1, Step: 3}},
		"NaN last":               {{Value: 2, Step: 1}, {Value: nan, Step: 2, Text: "diverged"}},
		"only NaN":               {{Value: nan, Step: 1}, {Value: nan, Step: 2}},
		"infinities and numbers": {{Value: inf, Step: 1}, {Value: -inf, Step: 2}, {Value: 4, Step: 3}},
		"only infinities":        {{Value: inf, Step: 1}, {Value: -inf, Step: 2}, {Value: nan, Step: 3}},
	}
	for name, points := range tests {
		t.Run(name, func(t *testing.T) {
			s := summaryOf(points...)
			for i := range points {
				points[i].Metric, points[i].Seq = "m", int64(i)
			}
			b, err := s.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			back, err := ParseSummary(string(b))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(s, back, nanEqual); d != "" {
				t.Errorf("read back (-want +got):\n%s", d)
			}
			whole := []collector.Series{{Attempt: s.Attempt, Metric: "m", Points: inStepOrder(points)}}
			want, got := collector.Observe(whole, "m"), collector.Observe(back.Series(), "m")
			got.Points = want.Points
			if d := cmp.Diff(want, got, nanEqual); d != "" {
				t.Errorf("observation (-points +summary):\n%s", d)
			}
		})
	}
}

func inStepOrder(points []collector.Point) []collector.Point {
	sorted := append([]collector.Point(nil), points...)
	for i := range sorted {
		for k := i; k > 0 && sorted[k].Step < sorted[k-1].Step; k-- {
			sorted[k], sorted[k-1] = sorted[k-1], sorted[k]
		}
	}
	return sorted
}

func TestASummaryAlwaysFits(t *testing.T) {
	s := Summary{Attempt: collector.Attempt{ID: "pod/0"}, Note: strings.Repeat("a line that is \"quoted\"\n", 1000)}
	add := func(name string, p collector.Point) {
		var g collector.Aggregator
		g.Add(collector.Attempt{}, p)
		m, _ := Summarize(name, &g)
		s.Metrics = append(s.Metrics, m)
	}
	add("objective", collector.Point{Value: math.NaN(), Text: strings.Repeat("x", 10_000)})
	for i := range 500 {
		add(fmt.Sprintf("metric-%d", i), collector.Point{Value: math.Pi})
	}
	b, err := s.Marshal()
	if err != nil || len(b) > MaxSummary || len(b) < MaxSummary/2 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	back, err := ParseSummary(string(b))
	if err != nil || back.Metrics[0].Name != "objective" || len(back.Metrics) < 10 ||
		!strings.Contains(back.Note, fmt.Sprintf("%d more metrics did not fit", 501-len(back.Metrics))) {
		t.Errorf("%d metrics, note %q, %v", len(back.Metrics), back.Note, err)
	}
}

func TestOtherMessagesAreNoSummaries(t *testing.T) {
	for _, message := range []string{"", "OOM", "{}", "[]", `{"vernier":2,"attempt":"p/0"}`, `{"vernier":1}`,
		`{"vernier":1,"attempt":"p/0","started":"yesterday"}`, `{"vernier":1,"attempt":"p/0","metrics":[{"name":"m"}]}`} {
		if _, err := ParseSummary(message); !errors.Is(err, ErrNoSummary) {
			t.Errorf("%q: %v", message, err)
		}
	}
}

func FuzzParseSummary(f *testing.F) {
	b, err := summaryOf(collector.Point{Value: 1}, collector.Point{Value: math.NaN(), Text: "x"}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Fuzz(func(t *testing.T, message string) {
		s, err := ParseSummary(message)
		if err != nil {
			return
		}
		for _, series := range s.Series() {
			collector.Observe([]collector.Series{series}, series.Metric)
		}
	})
}

func TestShorten(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"what fits is kept":            {"twenty bytes of text", "twenty bytes of text"},
		"what does not ends at a word": {"more than twenty bytes, as it were", "more than twenty…"},
		"a long word is cut":           {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa…"},
		"a comma does not end it":      {"twelve bytes, then something", "twelve bytes…"},
		"no character is torn":         {"ääääääääääääää", "ääääääää…"},
		"what is no UTF-8 is made so":  {"a\xffb", "a?b"},
		"nothing":                      {"", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Shorten(tc.text, 20)
			if got != tc.want || len(got) > 20 || !utf8.ValidString(got) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
