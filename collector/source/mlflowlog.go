package source

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector/parse"
)

func (p *Push) logMetric(r mlflowRequest, _ *http.Request) (any, error) {
	r.Metrics, r.Params, r.Tags = mlflowMetrics{r.mlflowMetric}, nil, nil
	return p.logBatch(r, nil)
}

func (p *Push) logParameter(r mlflowRequest, _ *http.Request) (any, error) {
	pairs := mlflowPairs{}
	if err := pairs.add(r.Key, r.text()); err != nil {
		return nil, mlflowFault(mlflowInvalid, "%v", err)
	}
	return p.logBatch(mlflowRequest{RunID: r.RunID, Params: pairs}, nil)
}

func (p *Push) setTag(r mlflowRequest, at *http.Request) (any, error) {
	e, err := tagEvent(r, at)
	if err != nil {
		return nil, err
	}
	return p.changeOf(mlflowRun, r.RunID, e, nothing)
}

// logBatch takes metrics, parameters and tags of a run, all or nothing. As in
// MLflow, a point is the same as another of equal run, metric, step, time and
// value, so that a batch may be sent again.
func (p *Push) logBatch(r mlflowRequest, _ *http.Request) (any, error) {
	points, err := p.measured(r.Metrics)
	if err != nil {
		return nil, err
	}
	err = p.change(func(s *mlflowState) (entry, error) {
		run := s.get(mlflowRun, r.RunID)
		if run == nil {
			return entry{}, missing(mlflowRun, r.RunID)
		}
		if err := unchanged(run, r.Params); err != nil {
			return entry{}, err
		}
		e := entry{Run: run.ID, Points: p.fresh(run.ID, points)}
		if len(r.Params)+len(r.Tags) > 0 {
			e.Event = &mlflowEvent{Kind: mlflowRun, ID: run.ID, Params: r.Params, Tags: r.Tags}
		}
		for _, point := range points {
			s.measure(run, point)
		}
		return e, nil
	})
	return struct{}{}, err
}

// fresh returns the wanted points that were not taken before.
func (p *Push) fresh(run string, points []entryPoint) (out []entryPoint) {
	batch := map[digest]bool{}
	for _, point := range points {
		d := identity(run, point)
		if p.wants(point.Metric) && !p.state.points.has(d) && !batch[d] {
			batch[d] = true
			out = append(out, point)
		}
	}
	return out
}

// measured are the points of a request. MLflow's own server too wants a time.
func (p *Push) measured(metrics []mlflowMetric) ([]entryPoint, error) {
	points := make([]entryPoint, len(metrics))
	for i, m := range metrics {
		v, err := m.number()
		if err != nil {
			return nil, mlflowFault(mlflowInvalid, "%v", err)
		}
		if m.Key == "" || len(m.Key) > maxMLflowName {
			return nil, mlflowFault(mlflowInvalid, "the name of a metric has %d bytes; it must have 1 to %d", len(m.Key), maxMLflowName)
		}
		if m.Timestamp == nil {
			return nil, mlflowFault(mlflowInvalid, "metric %.80q has no timestamp: give the time of the value in milliseconds since 1970", m.Key)
		}
		sample := parse.Sample{Metric: m.Key, Value: v, Step: max(int64(m.Step), 0), Time: time.UnixMilli(int64(*m.Timestamp))}
		points[i] = newEntryPoint(sample, p.cfg.Clock.Now())
	}
	return points, nil
}

// unchanged refuses other values of parameters that a run has, as MLflow does.
func unchanged(run *mlflowObject, params mlflowPairs) error {
	for _, key := range slices.Sorted(maps.Keys(params)) {
		if old, known := run.Params[key]; known && old != params[key] {
			return mlflowFault(mlflowInvalid, "the parameter %.80q of run %s is %.80q already and cannot become %.80q: a parameter is logged once", key, run.ID, old, params[key])
		}
	}
	return nil
}
