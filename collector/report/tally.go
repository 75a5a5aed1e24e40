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
		m = &counted{points: collector.NewCondenser(p.Metric), step: collector.NoStep}
		t.metrics[p.Metric] = m
		if !slices.Contains(t.order, p.Metric) {
			t.order = append(t.order, p.Metric)
		}
	}
	m.add(p)
}

func (t *tally) list() (list []MetricSummary) {
	for _, name := range t.order {
		if m := t.metrics[name]; m != nil {
			list = append(list, m.summary())
		}
	}
	return list
}

// counted is the points of one metric. What condenses the store's points
// condenses them, so that both give the same.
type counted struct {
	points *collector.Condenser
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
	return MetricSummary{Name: o.Metric, Last: valueOf(o.Latest), Min: valueOf(o.Min), Max: valueOf(o.Max),
		Step: m.points.LatestStep(), Count: int64(o.Points)}
}

func valueOf(m collector.Measure) Value {
	v := Value{Number: m.Value}
	if v.String() != m.Text && len(m.Text) <= maxValueText {
		v.Text = m.Text
	}
	return v
}
