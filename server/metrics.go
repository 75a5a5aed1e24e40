package server

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vernier-ml/vernier/collector"
)

type reportMetrics struct {
	ingested *prometheus.CounterVec
	rejected *prometheus.CounterVec
	lag      prometheus.Histogram
}

func newReportMetrics(registerer prometheus.Registerer) (*reportMetrics, error) {
	m := &reportMetrics{
		ingested: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_measurements_ingested_total",
			Help: "Points stored, by kind of source (stdout, file, tfevent, push, other). A point sent twice counts twice.",
		}, []string{"source"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_measurements_rejected_total",
			Help: "Points not accepted, by reason (unauthenticated, expired, invalid, store, cancelled). A call without points counts as one.",
		}, []string{"reason"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "vernier_ingest_lag_seconds",
			Help:    "Seconds from the time of a call's newest point to its storage.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800},
		}),
	}
	return m, register(registerer, m.ingested, m.rejected, m.lag)
}

func register(registerer prometheus.Registerer, all ...prometheus.Collector) error {
	if registerer == nil {
		return nil
	}
	for _, c := range all {
		if err := registerer.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *reportMetrics) ingest(points []collector.Point, now time.Time) {
	kinds := map[string]int{}
	var newest time.Time
	for _, p := range points {
		kinds[kindOf(p.Source)]++
		if p.Time.After(newest) {
			newest = p.Time
		}
	}
	for kind, n := range kinds {
		m.ingested.WithLabelValues(kind).Add(float64(n))
	}
	if !newest.IsZero() {
		m.lag.Observe(max(0, now.Sub(newest).Seconds()))
	}
}

// kindOf bounds the label: clients choose the names of sources.
func kindOf(source string) string {
	kind, _, _ := strings.Cut(source, ":")
	switch kind {
	case "stdout", "file", "tfevent", "push":
		return kind
	}
	return "other"
}

// MeasureStore returns a store that records how long each operation of s takes,
// in vernier_store_operation_duration_seconds. An error means that the metric
// could not be registered.
func MeasureStore(s collector.Store, registerer prometheus.Registerer) (collector.Store, error) {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "vernier_store_operation_duration_seconds",
		Help:    "Seconds that an operation of the observation store took, whether it succeeded or not.",
		Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
	}, []string{"op"})
	if err := register(registerer, seconds); err != nil {
		return nil, err
	}
	return &measuredStore{s, seconds}, nil
}

type measuredStore struct {
	collector.Store
	seconds *prometheus.HistogramVec
}

func (m *measuredStore) time(op string) func() {
	start := time.Now()
	return func() { m.seconds.WithLabelValues(op).Observe(time.Since(start).Seconds()) }
}

func (m *measuredStore) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	defer m.time("append")()
	return m.Store.Append(ctx, trial, attempt, points)
}

func (m *measuredStore) Finish(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	defer m.time("finish")()
	return m.Store.Finish(ctx, trial, attempt, note)
}

func (m *measuredStore) Attempts(ctx context.Context, trialUID string) ([]collector.AttemptState, error) {
	defer m.time("attempts")()
	return m.Store.Attempts(ctx, trialUID)
}

func (m *measuredStore) Points(ctx context.Context, trialUID string, metrics ...string) ([]collector.Series, error) {
	defer m.time("points")()
	return m.Store.Points(ctx, trialUID, metrics...)
}

func (m *measuredStore) Observe(ctx context.Context, trialUID string, metrics ...string) ([]collector.Observation, error) {
	defer m.time("observe")()
	return m.Store.Observe(ctx, trialUID, metrics...)
}

func (m *measuredStore) Metrics(ctx context.Context, trialUID string) ([]string, error) {
	defer m.time("metrics")()
	return m.Store.Metrics(ctx, trialUID)
}

func (m *measuredStore) Trials(ctx context.Context) ([]collector.TrialID, error) {
	defer m.time("trials")()
	return m.Store.Trials(ctx)
}

func (m *measuredStore) Delete(ctx context.Context, trialUID string) error {
	defer m.time("delete")()
	return m.Store.Delete(ctx, trialUID)
}
