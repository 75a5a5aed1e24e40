package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	katibv1beta1 "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
)

// katibSource is the Source of the points that come this way.
// The sidecar of a pushing pod has another: it reports for the same attempt, and
// takes what is acknowledged of its source for its own.
const katibSource = "push:katib"

// KatibReporter is a pod of a trial.
type KatibReporter struct {
	Trial collector.TrialID
	// Metrics are the names that the trial's experiment wants.
	Metrics []string
	// Pod is the pod's UID.
	Pod string
	// Started is when it started.
	Started time.Time
}

// KatibConfig describes Katib's DBManager.
type KatibConfig struct {
	// Store keeps the points.
	Store collector.Store
	// Reporters returns the pods of trials that have an address now and are not
	// on the host's network.
	Reporters func(context.Context, netip.Addr) ([]KatibReporter, error)
	// Trials returns the trials with a name, of all namespaces.
	Trials func(ctx context.Context, name string) ([]collector.TrialID, error)
	// OnPoints is told, after the write, that a trial has new points. It must not
	// block. Default: nothing is called.
	OnPoints func(collector.TrialID)
	// Metrics is where the Prometheus metrics are registered. Default: nowhere.
	Metrics prometheus.Registerer
	// Now is the time. Default: time.Now.
	Now func() time.Time
	// After is sent the time once, after a duration. Default: time.After.
	After func(time.Duration) <-chan time.Time
}

// NewKatibHandler returns Katib's DBManager and the path under which it must be
// mounted. It has no credentials, as Katib's has none, so:
//
//   - A report, or the deletion of what was reported, is accepted only from a pod
//     whose address belongs to the trial that the call names.
//   - Everybody who reaches it can read. A pod of a trial reads in its own
//     namespace; others by a name that only one trial has.
//   - Over a unix socket, whose file says who reaches it, metrics are only read.
func NewKatibHandler(cfg KatibConfig) (path string, handler http.Handler, err error) {
	if cfg.Store == nil || cfg.Reporters == nil || cfg.Trials == nil {
		return "", nil, errors.New("the DBManager needs a store, pods and trials")
	}
	if cfg.OnPoints == nil {
		cfg.OnPoints = func(collector.TrialID) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.After == nil {
		cfg.After = time.After
	}
	s := &katibService{cfg: cfg, waiting: make(chan struct{}, maxKatibWaiting),
		reading: make(chan struct{}, maxKatibReading), calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_katib_calls_total",
			Help: "Calls of Katib's DBManager, by call (report, get, delete) and result (ok, or the gRPC code).",
		}, []string{"call", "result"})}
	if err := register(cfg.Metrics, s.calls); err != nil {
		return "", nil, fmt.Errorf("register the metrics of the DBManager: %w", err)
	}
	path, handler = katibv1beta1.NewDBManagerHandler(s, connect.WithReadMaxBytes(maxBody))
	return path, s.guard(handler), nil
}

type katibService struct {
	cfg     KatibConfig
	calls   *prometheus.CounterVec
	waiting chan struct{} // has an element for each caller whose pod is waited for
	reading chan struct{} // likewise for each that reads

	mu   sync.Mutex
	last int64 // Seq of the newest point
}

var _ katibv1beta1.DBManagerHandler = (*katibService)(nil)

// ReportObservationLog implements katibv1beta1.DBManagerHandler. A report has no
// identity: one that is sent twice counts twice.
func (s *katibService) ReportObservationLog(ctx context.Context, r *katibv1beta1.ReportObservationLogRequest) (*katibv1beta1.ReportObservationLogReply, error) {
	return &katibv1beta1.ReportObservationLogReply{}, s.count("report", s.report(ctx, r))
}

func (s *katibService) report(ctx context.Context, r *katibv1beta1.ReportObservationLogRequest) error {
	logs := r.GetObservationLog().GetMetricLogs()
	if len(logs) > maxCallPoints {
		return invalid(fmt.Errorf("%d points in one report; send at most %d", len(logs), maxCallPoints))
	}
	pod, err := callerOf(ctx).speaksFor(r.GetTrialName())
	if err != nil {
		return err
	}
	points := s.points(pod, logs)
	if len(points) == 0 {
		return nil
	}
	attempt, err := s.attempt(ctx, pod)
	if err == nil {
		err = s.cfg.Store.Append(ctx, pod.Trial, attempt, points)
	}
	if err != nil {
		return notStored(ctx, err)
	}
	s.cfg.OnPoints(pod.Trial)
	return nil
}

// points are the wanted ones. Their Seq grows over restarts, as the time does, and
// differs between managers that take reports of one pod.
func (s *katibService) points(pod KatibReporter, logs []*katibv1beta1.MetricLog) []collector.Point {
	now := s.cfg.Now()
	var points []collector.Point
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range logs {
		name := l.GetMetric().GetName()
		if !slices.Contains(pod.Metrics, name) {
			continue
		}
		p := collector.Point{Metric: name, Step: collector.NoStep, Time: now, Source: katibSource}
		p.Value, p.Text = collector.ParseValue(l.GetMetric().GetValue(), report.MaxText)
		if at, err := time.Parse(time.RFC3339Nano, l.GetTimeStamp()); err == nil {
			p.Time = at.UTC()
		}
		s.last = max(s.last+1, now.UnixNano())
		p.Seq = s.last
		points = append(points, p)
	}
	return points
}

// attempt is what the pod's collector reports too, if it has one.
func (s *katibService) attempt(ctx context.Context, pod KatibReporter) (collector.Attempt, error) {
	states, err := s.cfg.Store.Attempts(ctx, pod.Trial.UID)
	if err != nil {
		return collector.Attempt{}, err
	}
	for _, state := range slices.Backward(states) {
		if strings.HasPrefix(state.Attempt.ID, pod.Pod+"/") {
			return state.Attempt, nil
		}
	}
	return collector.Attempt{ID: pod.Pod + "/0", Started: pod.Started}, nil
}

// DeleteObservationLog implements katibv1beta1.DBManagerHandler.
func (s *katibService) DeleteObservationLog(ctx context.Context, r *katibv1beta1.DeleteObservationLogRequest) (*katibv1beta1.DeleteObservationLogReply, error) {
	pod, err := callerOf(ctx).speaksFor(r.GetTrialName())
	if err == nil {
		if err = s.cfg.Store.Delete(ctx, pod.Trial.UID); err != nil {
			err = unavailable(ctx, err)
		}
	}
	return &katibv1beta1.DeleteObservationLogReply{}, s.count("delete", err)
}

func (s *katibService) count(call string, err error) error {
	result := "ok"
	if err != nil {
		result = connect.CodeOf(err).String()
	}
	s.calls.WithLabelValues(call, result).Inc()
	return err
}
