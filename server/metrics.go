package server

import (
	"context"
	"path"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
)

// maxLag is the longest lag that is observed. Programs state times of their own,
// 1970 among them, which say nothing of how long a point was on its way.
const maxLag = time.Hour

type reportMetrics struct {
	ingested    *prometheus.CounterVec
	duplicates  *prometheus.CounterVec
	rejected    *prometheus.CounterVec
	lag         prometheus.Histogram
	calls       *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	inFlight    prometheus.Gauge
	batchPoints prometheus.Histogram
	batchBytes  prometheus.Histogram
	streams     prometheus.GaugeFunc
	attempts    *streams
}

func newReportMetrics(registerer prometheus.Registerer, now func() time.Time) (*reportMetrics, error) {
	attempts := newStreams(now)
	m := &reportMetrics{
		attempts: attempts,
		ingested: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_measurements_ingested_total",
			Help: "Points stored, by kind of source (stdout, file, tfevent, prometheus, wandb, push, other). A point sent twice counts twice.",
		}, []string{"source"}),
		duplicates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_measurements_duplicate_total",
			Help: "Of these, points that this process knew to be stored already, by kind of source.",
		}, []string{"source"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_measurements_rejected_total",
			Help: "Points not accepted, by reason (unauthenticated, expired, invalid, full, store, cancelled). A call without points, and one without a token that is good, counts as one.",
		}, []string{"reason"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "vernier_ingest_lag_seconds",
			Help:    "Seconds from the time of a call's newest point (when it was read, or what the program states) to its storage. More than an hour is left out.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800},
		}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_report_calls_total",
			Help: "Calls of the report service, by method (Hello, Report; other where the caller has no token that is good) and code (ok, or that of the error).",
		}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vernier_report_call_duration_seconds",
			Help:    "Seconds that a call of the report service took, from its decoded request to its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "vernier_report_calls_in_flight",
			Help: "Calls of the report service that are being answered.",
		}),
		batchPoints: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "vernier_report_batch_points",
			Help:    "Points of a stored batch.",
			Buckets: []float64{0, 1, 4, 16, 64, 256, 1024, 4096, 8192},
		}),
		batchBytes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "vernier_report_batch_bytes",
			Help:    "Bytes of a stored batch, as it was encoded.",
			Buckets: prometheus.ExponentialBuckets(64, 4, 9),
		}),
		streams: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "vernier_report_streams",
			Help: "Attempts that reported within the last minute and are not final.",
		}, attempts.live),
	}
	return m, register(registerer, m.ingested, m.duplicates, m.rejected, m.lag, m.calls, m.seconds, m.inFlight,
		m.batchPoints, m.batchBytes, m.streams)
}

// observe is an interceptor that times calls and counts their codes.
func (m *reportMetrics) observe(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		begin := time.Now()
		m.inFlight.Inc()
		defer m.inFlight.Dec()
		answer, err := next(ctx, r)
		method, code := path.Base(r.Spec().Procedure), "ok"
		if err != nil {
			code = connect.CodeOf(err).String()
		}
		m.calls.WithLabelValues(method, code).Inc()
		m.seconds.WithLabelValues(method).Observe(time.Since(begin).Seconds())
		return answer, err
	}
}

// turnedAway counts a call whose body was not read.
func (m *reportMetrics) turnedAway(procedure string, err error) {
	method := path.Base(procedure)
	if method != "Hello" && method != "Report" {
		method = "other" // a caller may write anything there
	}
	m.calls.WithLabelValues(method, connect.CodeOf(err).String()).Inc()
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

// ingest counts a call that was stored.
func (m *reportMetrics) ingest(trial collector.TrialID, attempt string, points []collector.Point, r *vernierv1.ReportRequest) {
	kinds, again := map[string]int{}, map[string]int{}
	var newest time.Time
	for _, p := range points {
		kinds[kindOf(p.Source)]++
		if p.Time.After(newest) {
			newest = p.Time
		}
	}
	for source, n := range m.attempts.stored(stream{trial.UID, attempt}, points, r.GetFinal()) {
		again[kindOf(source)] += n
	}
	for kind, n := range kinds {
		m.ingested.WithLabelValues(kind).Add(float64(n))
	}
	for kind, n := range again {
		m.duplicates.WithLabelValues(kind).Add(float64(n))
	}
	m.batchPoints.Observe(float64(len(points)))
	m.batchBytes.Observe(float64(proto.Size(r)))
	if lag := m.attempts.now().Sub(newest); lag <= maxLag {
		m.lag.Observe(max(0, lag.Seconds()))
	}
}

// kindOf bounds the label: clients choose the names of sources.
func kindOf(source string) string {
	kind, _, _ := strings.Cut(source, ":")
	switch kind {
	case "stdout", "file", "tfevent", "prometheus", "wandb", "push":
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

func (m *measuredStore) Note(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, note string) error {
	defer m.time("note")()
	return m.Store.Note(ctx, trial, attempt, note)
}

func (m *measuredStore) Attempts(ctx context.Context, trialUID string) ([]collector.AttemptState, error) {
	defer m.time("attempts")()
	return m.Store.Attempts(ctx, trialUID)
}

func (m *measuredStore) Scan(ctx context.Context, trialUID string, metrics []string, yield func(collector.Attempt, collector.Point) error) error {
	defer m.time("scan")()
	return m.Store.Scan(ctx, trialUID, metrics, yield)
}

func (m *measuredStore) Metrics(ctx context.Context, trialUID string) ([]string, error) {
	defer m.time("metrics")()
	return m.Store.Metrics(ctx, trialUID)
}

func (m *measuredStore) Inventory(ctx context.Context) ([]collector.TrialInfo, error) {
	defer m.time("inventory")()
	return m.Store.Inventory(ctx)
}

func (m *measuredStore) Stat(ctx context.Context) (collector.Stat, error) {
	defer m.time("stat")()
	return m.Store.Stat(ctx)
}

func (m *measuredStore) Delete(ctx context.Context, trialUID string) error {
	defer m.time("delete")()
	return m.Store.Delete(ctx, trialUID)
}
