package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// MaxSummary is the size of a termination message that the kubelet keeps.
const MaxSummary = 4096

// Summary is the sidecar's termination message: what one attempt measured, in so
// few bytes. The trial gets its objective from it when the store has lost, or never
// had, the points.
type Summary struct {
	Attempt collector.Attempt
	// Final is true when the service has acknowledged everything: the store is
	// then the better source.
	Final bool
	// Metrics are in the order in which they were asked for, the objective
	// first. Those that did not fit are missing, and counted in the note.
	Metrics []MetricSummary
	// Note says what could not be read or sent. It may be cut.
	Note string
}

// MetricSummary sums up the points of one metric in one attempt, as
// collector.Aggregator does. Min and Max are unavailable where no value is a
// number.
type MetricSummary struct {
	Name string            `json:"name"`
	Last collector.Measure `json:"last"`
	Min  collector.Measure `json:"min"`
	Max  collector.Measure `json:"max"`
	// Step is the step of Last, or collector.NoStep.
	Step int64 `json:"step"`
	// Count is the number of points.
	Count int64 `json:"n"`
}

// maxText bounds a value that is not a number, which may be any text, in bytes.
const maxText = 40

// Summarize returns the summary of a metric; ok is false when it has no points.
func Summarize(name string, g *collector.Aggregator) (m MetricSummary, ok bool) {
	o := g.Observation(name)
	return MetricSummary{Name: name, Last: clipped(o.Latest), Min: clipped(o.Min), Max: clipped(o.Max),
		Step: g.LatestStep(), Count: int64(o.Points)}, o.Points > 0
}

func clipped(m collector.Measure) collector.Measure {
	if len(m.Text) > maxText {
		m.Text = collector.FormatValue(m.Value)
	}
	return m
}

// Series returns the summary as points, at most three for each metric (least,
// greatest, last), so that what reduces the points of a store reduces a summary
// too. Their source is "summary"; only the last one's step is known, and it orders
// behind the others.
func (s Summary) Series() []collector.Series {
	var all []collector.Series
	for _, m := range s.Metrics {
		series := collector.Series{Attempt: s.Attempt, Metric: m.Name}
		for i, v := range []collector.Measure{m.Min, m.Max, m.Last} {
			series.Points = append(series.Points, collector.Point{Metric: m.Name, Value: v.Value, Text: v.Text,
				Step: m.Step, Source: "summary", Seq: int64(i)})
		}
		if m.Count == 1 {
			series.Points = series.Points[2:]
		}
		all = append(all, series)
	}
	return all
}

type wireSummary struct {
	Version int             `json:"vernier"`
	Attempt string          `json:"attempt"`
	Started time.Time       `json:"started,omitzero"`
	Final   bool            `json:"final"`
	Metrics []MetricSummary `json:"metrics,omitempty"`
	Note    string          `json:"note,omitempty"`
}

// Marshal writes the summary as JSON of at most MaxSummary bytes. When all does
// not fit, the note is cut first, then metrics are left out from the end, and the
// note says how many.
func (s Summary) Marshal() ([]byte, error) {
	w := wireSummary{Version: 1, Attempt: s.Attempt.ID, Started: s.Attempt.Started.UTC(), Final: s.Final, Metrics: s.Metrics, Note: s.Note}
	note := s.Note
	for {
		b, err := json.Marshal(w)
		if err != nil || len(b) <= MaxSummary {
			return b, err
		}
		switch {
		case len(note) > 80:
			note = Shorten(note, len(note)/2)
			w.Note = note
		case len(w.Metrics) > 0:
			w.Metrics = w.Metrics[:len(w.Metrics)-1]
			w.Note = strings.TrimPrefix(fmt.Sprintf("%s; %d more metrics did not fit", note, len(s.Metrics)-len(w.Metrics)), "; ")
		default:
			return nil, fmt.Errorf("the attempt ID of %d bytes leaves no room for a summary", len(s.Attempt.ID))
		}
	}
}

// ErrNoSummary means that a termination message is not a summary.
var ErrNoSummary = errors.New("the termination message is not a summary of the collector")

// ParseSummary reads a termination message. Text that is something else gives
// ErrNoSummary.
func ParseSummary(message string) (Summary, error) {
	var w wireSummary
	if err := json.Unmarshal([]byte(message), &w); err != nil || w.Version != 1 || w.Attempt == "" {
		return Summary{}, ErrNoSummary
	}
	for _, m := range w.Metrics {
		if m.Name == "" || m.Last.Text == "" || m.Count < 1 {
			return Summary{}, fmt.Errorf("%w: a metric without name or points", ErrNoSummary)
		}
	}
	return Summary{Attempt: collector.Attempt{ID: w.Attempt, Started: w.Started.UTC()}, Final: w.Final, Metrics: w.Metrics, Note: w.Note}, nil
}

// Shorten returns s as valid UTF-8 of at most limit bytes. What is longer ends at
// a word, with an ellipsis.
func Shorten(s string, limit int) string {
	const ellipsis = "…"
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= limit {
		return s
	}
	// A rune at the cut may be torn.
	cut := strings.ToValidUTF8(s[:limit-len(ellipsis)], "")
	// A word of any length must not cost all that stands before it.
	if at := strings.LastIndexByte(cut, ' '); at > limit/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,;:") + ellipsis
}
