package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// MaxSummary is the size of a termination message that the kubelet keeps.
const MaxSummary = 4096

// Summary condenses the points of one attempt into what fits a termination
// message. The trial gets its objective from it when the store has lost, or
// never had, the points.
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

// MetricSummary condenses the points of one metric.
type MetricSummary struct {
	Name string
	// Last, Min and Max are what collector.Observe says of the attempt. Min and Max
	// have the text collector.Unavailable where no value is a number.
	Last, Min, Max Value
	// Step is the step of Last, or collector.NoStep.
	Step int64
	// Count is the number of points. Of attempts before the newest one, only those
	// that were a least or greatest value of their time are counted.
	Count int64
}

// Value is a number and how it was written.
type Value struct {
	Number float64
	// Text is as in collector.Point: empty unless it differs from the shortest
	// form of Number.
	Text string
}

func (v Value) String() string {
	return collector.Point{Value: v.Number, Text: v.Text}.Written()
}

// ahead reports whether a replaces b as an extreme: a finite value beats an
// infinite one, which beats NaN, which beats what is no number; within a class
// the order counts.
func ahead(a, b Value, inOrder bool) bool {
	if class(a) != class(b) {
		return class(a) < class(b)
	}
	return inOrder
}

// notNumber is the class of text.
const notNumber = 3

func class(v Value) int {
	switch {
	case math.IsNaN(v.Number) && v.Text != "" && !strings.EqualFold(strings.TrimLeft(v.Text, "+-"), "nan"):
		return notNumber
	case math.IsNaN(v.Number):
		return 2
	case math.IsInf(v.Number, 0):
		return 1
	}
	return 0
}

// Series returns the summary as points, at most three for each metric (least,
// greatest, last), so that what condenses the points of a store condenses a
// summary too. Their source is "summary"; only the last one's step is known, and
// it orders behind the others.
func (s Summary) Series() []collector.Series {
	var all []collector.Series
	for _, m := range s.Metrics {
		series := collector.Series{Attempt: s.Attempt, Metric: m.Name}
		for i, v := range []Value{m.Min, m.Max, m.Last} {
			series.Points = append(series.Points, collector.Point{Metric: m.Name, Value: v.Number, Text: v.Text,
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
	Version int          `json:"vernier"`
	Attempt string       `json:"attempt"`
	Started string       `json:"started,omitempty"`
	Final   bool         `json:"final"`
	Metrics []wireMetric `json:"metrics,omitempty"`
	Note    string       `json:"note,omitempty"`
}

// Values are strings, because JSON has no NaN.
type wireMetric struct {
	Name  string `json:"name"`
	Last  string `json:"last"`
	Min   string `json:"min"`
	Max   string `json:"max"`
	Step  int64  `json:"step"`
	Count int64  `json:"n"`
}

// Marshal writes the summary as JSON of at most MaxSummary bytes. When all does
// not fit, the note is cut first, then metrics are left out from the end, and the
// note says how many.
func (s Summary) Marshal() ([]byte, error) {
	w := wireSummary{Version: 1, Attempt: s.Attempt.ID, Final: s.Final, Note: s.Note}
	if !s.Attempt.Started.IsZero() {
		w.Started = s.Attempt.Started.UTC().Format(time.RFC3339Nano)
	}
	for _, m := range s.Metrics {
		w.Metrics = append(w.Metrics, wireMetric{m.Name, m.Last.String(), m.Min.String(), m.Max.String(), m.Step, m.Count})
	}
	note := s.Note
	for {
		b, err := json.Marshal(w)
		if err != nil || len(b) <= MaxSummary {
			return b, err
		}
		switch {
		case len(note) > 80:
			note = shorten(note, len(note)/2)
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
	s := Summary{Attempt: collector.Attempt{ID: w.Attempt}, Final: w.Final, Note: w.Note}
	if w.Started != "" {
		started, err := time.Parse(time.RFC3339Nano, w.Started)
		if err != nil {
			return Summary{}, fmt.Errorf("%w: started: %w", ErrNoSummary, err)
		}
		s.Attempt.Started = started.UTC()
	}
	for _, m := range w.Metrics {
		if m.Name == "" || m.Count < 1 {
			return Summary{}, fmt.Errorf("%w: a metric without name or points", ErrNoSummary)
		}
		s.Metrics = append(s.Metrics, MetricSummary{Name: m.Name, Step: m.Step, Count: m.Count,
			Last: parseValue(m.Last), Min: parseValue(m.Min), Max: parseValue(m.Max)})
	}
	return s, nil
}

func parseValue(text string) Value {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return Value{Number: math.NaN(), Text: text}
	}
	v := Value{Number: number}
	if v.String() != text {
		v.Text = text
	}
	return v
}
