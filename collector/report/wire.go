package report

import (
	"fmt"
	"maps"
	"slices"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
)

// FullHeader marks the error (ResourceExhausted) of a call that says that nothing more
// is stored of the trial. Other calls with that code may be refused for their size.
const FullHeader = "Vernier-Trial-Full"

// EncodePoints puts points into columns, one message for each source, in order
// of source. Points of a source must be in order of Seq; a point whose Seq does
// not grow is the same point again and is left out.
func EncodePoints(points []collector.Point) []*vernierv1.SourcePoints {
	columns := map[string]*encoder{}
	for _, p := range points {
		e := columns[p.Source]
		if e == nil {
			e = &encoder{message: &vernierv1.SourcePoints{Source: p.Source}, metrics: map[string]uint32{}, seq: -1}
			columns[p.Source] = e
		}
		e.add(p)
	}
	var out []*vernierv1.SourcePoints
	for _, source := range slices.Sorted(maps.Keys(columns)) {
		out = append(out, columns[source].message)
	}
	return out
}

type encoder struct {
	message   *vernierv1.SourcePoints
	metrics   map[string]uint32
	seq, time int64
}

func (e *encoder) add(p collector.Point) {
	if p.Seq <= e.seq {
		return
	}
	m := e.message
	metric, known := e.metrics[p.Metric]
	if !known {
		metric = uint32(len(m.Metrics))
		e.metrics[p.Metric] = metric
		m.Metrics = append(m.Metrics, p.Metric)
	}
	if p.Text != "" {
		if m.Text == nil {
			m.Text = map[uint32]string{}
		}
		m.Text[uint32(len(m.Value))] = p.Text
	}
	nanos, _ := collector.UnixNano(p.Time) // what does not fit is not sent
	m.Metric = append(m.Metric, metric)
	m.Value = append(m.Value, p.Value)
	m.Step = append(m.Step, p.Step)
	m.Seq = append(m.Seq, uint64(p.Seq-max(e.seq, 0)))
	m.Time = append(m.Time, nanos-e.time)
	e.seq, e.time = p.Seq, nanos
}

// DecodePoints is the reverse of EncodePoints. An error says which part of the
// message does not hold together.
func DecodePoints(messages []*vernierv1.SourcePoints) ([]collector.Point, error) {
	n := 0
	for _, m := range messages {
		n += len(m.GetValue())
	}
	points := make([]collector.Point, 0, n)
	seen := map[string]bool{}
	for i, m := range messages {
		if m.GetSource() == "" || seen[m.GetSource()] {
			return nil, fmt.Errorf("points[%d]: source %q is empty or given twice", i, m.GetSource())
		}
		seen[m.GetSource()] = true
		var err error
		if points, err = decodeSource(points, m); err != nil {
			return nil, fmt.Errorf("points of source %q: %w", m.GetSource(), err)
		}
	}
	return points, nil
}

func decodeSource(points []collector.Point, m *vernierv1.SourcePoints) ([]collector.Point, error) {
	n := len(m.GetValue())
	if len(m.GetMetric()) != n || len(m.GetStep()) != n || len(m.GetSeq()) != n || len(m.GetTime()) != n {
		return nil, fmt.Errorf("the columns differ in length: metric %d, value %d, step %d, seq %d, time %d",
			len(m.GetMetric()), n, len(m.GetStep()), len(m.GetSeq()), len(m.GetTime()))
	}
	for _, name := range m.GetMetrics() {
		if name == "" {
			return nil, fmt.Errorf("a metric without name")
		}
	}
	for i := range m.GetText() {
		if int64(i) >= int64(n) {
			return nil, fmt.Errorf("text for point %d of %d", i, n)
		}
	}
	var seq, nanos int64
	for i, value := range m.GetValue() {
		if int(m.Metric[i]) >= len(m.Metrics) {
			return nil, fmt.Errorf("point %d: metric %d of %d", i, m.Metric[i], len(m.Metrics))
		}
		delta := m.Seq[i]
		if i > 0 && delta == 0 || delta >= 1<<63 || seq+int64(delta) < seq || seq+int64(delta) == 1<<63-1 {
			return nil, fmt.Errorf("point %d: the sequence must grow and stay below 2^63-1", i)
		}
		seq += int64(delta)
		nanos += m.Time[i]
		points = append(points, collector.Point{
			Metric: m.Metrics[m.Metric[i]], Value: value, Text: m.Text[uint32(i)],
			Step: m.Step[i], Time: collector.FromUnixNano(nanos), Source: m.Source, Seq: seq,
		})
	}
	return points, nil
}

// EncodeAttempt puts an attempt on the wire.
func EncodeAttempt(a collector.Attempt) *vernierv1.Attempt {
	started, _ := collector.UnixNano(a.Started)
	return &vernierv1.Attempt{Id: a.ID, StartedUnixNano: started}
}

// DecodeAttempt is the reverse of EncodeAttempt.
func DecodeAttempt(m *vernierv1.Attempt) (collector.Attempt, error) {
	if m.GetId() == "" {
		return collector.Attempt{}, fmt.Errorf("the attempt has no id")
	}
	return collector.Attempt{ID: m.Id, Started: collector.FromUnixNano(m.StartedUnixNano)}, nil
}
