package report

import (
	"slices"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// A value that is not a number may be any text; it must not fill the summary.
	maxValueText = 40
	// Sources of one metric whose last step is remembered while others are read.
	maxCarried = 64
)

// tally collects the summary while points are read.
type tally struct {
	order   []string
	metrics map[string]*counted
}

func newTally(metrics []string) *tally {
	return &tally{order: slices.Clone(metrics), metrics: map[string]*counted{}}
}

func (t *tally) add(p collector.Point) {
	m := t.metrics[p.Metric]
	if m == nil {
		if len(t.metrics) == maxMetrics {
			return
		}
		m = &counted{points: collector.NewCondenser(p.Metric), reach: newReach(), step: collector.NoStep}
		t.metrics[p.Metric] = m
		if !slices.Contains(t.order, p.Metric) {
			t.order = append(t.order, p.Metric)
		}
	}
	m.add(p)
}

func (t *tally) list() []MetricSummary { return t.history().Metrics() }

// history is valid until the next point.
func (t *tally) history() History {
	h := History{order: t.order, metrics: map[string]past{}}
	for name, m := range t.metrics {
		h.metrics[name] = past{summary: m.summary(), reach: m.reach}
	}
	return h
}

// counted is the points of one metric. What condenses the store's points
// condenses them, so that both give the same.
type counted struct {
	points *collector.Condenser
	reach
	// Sources are read side by side, while a Condenser wants one after the other:
	// step is the one stated last in source, and steps has it for the others.
	source string
	step   int64
	steps  map[string]int64
}

// add counts a point. Points of one source come in order of Seq.
func (m *counted) add(p collector.Point) {
	if p.Source != m.source {
		m.turnTo(p.Source)
	}
	if p.Step == collector.NoStep {
		p.Step = m.step
	}
	m.step = p.Step
	m.points.Add(collector.Attempt{}, p)
	m.reach.add(p.Step, valueOf(p.Value, p.Text))
}

func (m *counted) turnTo(source string) {
	if m.step != collector.NoStep {
		if m.steps == nil {
			m.steps = map[string]int64{}
		}
		m.steps[m.source] = m.step
	}
	step, known := m.steps[source]
	if !known {
		step = collector.NoStep
	}
	delete(m.steps, source)
	for other := range m.steps {
		if len(m.steps) <= maxCarried {
			break
		}
		delete(m.steps, other)
	}
	m.source, m.step = source, step
}

func (m *counted) summary() MetricSummary {
	o := m.points.Observation()
	return MetricSummary{Name: o.Metric, Last: measured(o.Latest), Min: measured(o.Min), Max: measured(o.Max),
		Step: m.points.LatestStep(), Count: int64(o.Points)}
}

func measured(m collector.Measure) Value {
	if m.Text == (Value{Number: m.Value}).String() {
		return Value{Number: m.Value}
	}
	return valueOf(m.Value, m.Text)
}

func valueOf(number float64, text string) Value {
	if len(text) > maxValueText {
		text = ""
	}
	return Value{number, text}
}
