// Package server serves programs. In it: the report service, to which the
// collectors of running trials send their points.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/tracing"
)

// Limits of one call.
const (
	maxBody       = 4 << 20
	maxCallPoints = 4 * report.MaxBatch
	maxAttemptID  = 256
	maxNote       = 4096
)

// ReportConfig describes a report service.
type ReportConfig struct {
	// Store takes the points.
	Store collector.Store
	// Keys returns the keys that tokens may be signed with, the newest first.
	// It is called for each request, so that keys can be changed while running.
	Keys func() [][]byte
	// OnPoints is told, after the write, that a trial has new points or is
	// final. It must not block. Default: nothing is called.
	OnPoints func(collector.TrialID)
	// OnUsage is told that there is more of the machine's use of a trial, which nothing
	// is decided by. It must not block. Default: nothing is called.
	OnUsage func(collector.TrialID)
	// Metrics is where the Prometheus metrics are registered. Default: nowhere.
	Metrics prometheus.Registerer
	// Traces take a span of each call that names one as its parent. Default: none.
	Traces tracing.Tracer
	// Now is the time. Default: time.Now.
	Now func() time.Time
}

// NewReportHandler returns the report service and the path under which it must
// be mounted. An error means that the metrics could not be registered.
func NewReportHandler(cfg ReportConfig) (mount string, handler http.Handler, err error) {
	if cfg.Store == nil || cfg.Keys == nil {
		return "", nil, errors.New("the report service needs a store and keys")
	}
	if cfg.OnPoints == nil {
		cfg.OnPoints = func(collector.TrialID) {}
	}
	if cfg.OnUsage == nil {
		cfg.OnUsage = func(collector.TrialID) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	metrics, err := newReportMetrics(cfg.Metrics, cfg.Now)
	if err != nil {
		return "", nil, fmt.Errorf("register the metrics of the report service: %w", err)
	}
	s := &reportService{cfg: cfg, metrics: metrics}
	mount, handler = vernierv1.NewReportServiceHandler(s,
		connect.WithReadMaxBytes(maxBody), connect.WithInterceptors(connect.UnaryInterceptorFunc(metrics.observe), connect.UnaryInterceptorFunc(s.trace)))
	return mount, s.guard(handler), nil
}

// trialKey is that of the caller's trial in a request's context.
type trialKey struct{}

// guard lets only calls pass that bear the token of a trial. The others' bodies are
// not read: any program that reaches the port may send any number of them, and decoded they
// take twenty times their size.
func (s *reportService) guard(next http.Handler) http.Handler {
	faults := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		trial, err := s.authenticate(r.Header.Get("Authorization"))
		if err != nil {
			s.metrics.turnedAway(r.URL.Path, err)
			_ = faults.Write(w, r, s.reject(err, 1)) // a client that went away needs no answer
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), trialKey{}, trial)))
	})
}

// caller is the trial whose token the call bears.
func caller(ctx context.Context) collector.TrialID {
	trial, _ := ctx.Value(trialKey{}).(collector.TrialID) // guard has put it there
	return trial
}

type reportService struct {
	cfg     ReportConfig
	metrics *reportMetrics

	mu sync.Mutex
	// logged is when it was last logged that the store fails.
	logged time.Time
}

// trace is an interceptor that adds calls to the traces of their trials.
func (s *reportService) trace(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		t := caller(ctx)
		ctx, span := s.cfg.Traces.Continue(ctx, r.Header().Get(tracing.Header), "report."+path.Base(r.Spec().Procedure), tracing.Of(t.Namespace, t.Experiment, t.Name))
		answer, err := next(ctx, r)
		tracing.End(span, err)
		return answer, err
	}
}

var _ vernierv1.ReportServiceHandler = (*reportService)(nil)

// Hello implements vernierv1.ReportServiceHandler.
func (s *reportService) Hello(ctx context.Context, r *vernierv1.HelloRequest) (*vernierv1.HelloResponse, error) {
	trial := caller(ctx)
	attempt, err := decodeAttempt(r.GetAttempt())
	if err != nil {
		return nil, s.reject(err, 1)
	}
	states, err := s.cfg.Store.Attempts(ctx, trial.UID)
	if err != nil {
		return nil, s.reject(unavailable(ctx, err), 1)
	}
	for _, state := range states {
		if state.Attempt.ID == attempt.ID {
			s.metrics.attempts.hello(stream{trial.UID, attempt.ID}, state.Acked)
			return &vernierv1.HelloResponse{Acked: state.Acked, Final: state.Final}, nil
		}
	}
	return &vernierv1.HelloResponse{}, nil
}

// Report implements vernierv1.ReportServiceHandler.
func (s *reportService) Report(ctx context.Context, r *vernierv1.ReportRequest) (*vernierv1.ReportResponse, error) {
	trial := caller(ctx)
	attempt, points, err := decodeReport(r)
	if err != nil {
		return nil, s.reject(err, count(r))
	}
	if err := s.write(ctx, trial, attempt, points, r); err != nil {
		return nil, s.reject(notStored(ctx, err), count(r))
	}
	s.metrics.ingest(trial, attempt.ID, points, r)
	if attempt.System() {
		s.cfg.OnUsage(trial)
	} else {
		s.cfg.OnPoints(trial)
	}
	answer := &vernierv1.ReportResponse{Acked: make(map[string]int64, len(r.GetPoints()))}
	for _, p := range points {
		answer.Acked[p.Source] = max(answer.Acked[p.Source], p.Seq+1)
	}
	return answer, nil
}

func (s *reportService) write(ctx context.Context, trial collector.TrialID, attempt collector.Attempt,
	points []collector.Point, r *vernierv1.ReportRequest) error {
	if len(points) > 0 || !r.GetFinal() {
		if err := s.cfg.Store.Append(ctx, trial, attempt, points); err != nil {
			return err
		}
	}
	switch {
	case r.GetFinal():
	case r.Note != nil:
		return s.cfg.Store.Note(ctx, trial, attempt, clip(r.GetNote(), maxNote))
	default:
		return nil
	}
	return s.cfg.Store.Finish(ctx, trial, attempt, clip(r.GetNote(), maxNote))
}

// authenticate returns the trial that the bearer of a token may report for.
func (s *reportService) authenticate(authorization string) (collector.TrialID, error) {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return collector.TrialID{}, connect.NewError(connect.CodeUnauthenticated,
			errors.New("send the trial's token: Authorization: Bearer <token>"))
	}
	claims, err := report.Verify(s.cfg.Keys(), token, s.cfg.Now())
	if err != nil {
		return collector.TrialID{}, connect.NewError(connect.CodeUnauthenticated, err)
	}
	return claims.Trial, nil
}

func decodeReport(r *vernierv1.ReportRequest) (collector.Attempt, []collector.Point, error) {
	attempt, err := decodeAttempt(r.GetAttempt())
	if err != nil {
		return attempt, nil, err
	}
	if n := count(r); n > maxCallPoints {
		return attempt, nil, invalid(fmt.Errorf("%d points in one call; send at most %d", n, maxCallPoints))
	}
	for _, m := range r.GetPoints() {
		if err := checkLengths(m); err != nil {
			return attempt, nil, invalid(err)
		}
	}
	points, err := report.DecodePoints(r.GetPoints())
	if err != nil {
		return attempt, nil, invalid(err)
	}
	return attempt, points, nil
}

func checkLengths(m *vernierv1.SourcePoints) error {
	for _, name := range append(m.GetMetrics(), m.GetSource()) {
		if len(name) > report.MaxName {
			return fmt.Errorf("a metric's or source's name has %d bytes; at most %d are kept", len(name), report.MaxName)
		}
	}
	for i, text := range m.GetText() {
		if len(text) > report.MaxText {
			return fmt.Errorf("the text of point %d has %d bytes; at most %d are kept", i, len(text), report.MaxText)
		}
	}
	return nil
}

func decodeAttempt(m *vernierv1.Attempt) (collector.Attempt, error) {
	attempt, err := report.DecodeAttempt(m)
	if err != nil {
		return attempt, invalid(err)
	}
	if len(attempt.ID) > maxAttemptID {
		return attempt, invalid(fmt.Errorf("the attempt's id has %d bytes; at most %d are kept", len(attempt.ID), maxAttemptID))
	}
	return attempt, nil
}

func count(r *vernierv1.ReportRequest) (n int) {
	for _, m := range r.GetPoints() {
		n += len(m.GetValue())
	}
	return n
}

func clip(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "?")
}

func invalid(err error) error { return connect.NewError(connect.CodeInvalidArgument, err) }

// unavailable says that the call may be repeated: the points are well-formed, so
// what failed is the store.
func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return connect.NewError(connect.CodeCanceled, err)
	}
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf("the store failed: %w", err))
}

// notStored is why points were not stored: a quota, or the call may be repeated.
func notStored(ctx context.Context, err error) error {
	if !errors.Is(err, ErrQuota) {
		return unavailable(ctx, err)
	}
	full := connect.NewError(connect.CodeResourceExhausted, err)
	full.Meta().Set(report.FullHeader, "true")
	return full
}

// reject counts the points of a call that was not accepted (a call without
// points counts as one) and returns err.
func (s *reportService) reject(err error, points int) error {
	why := reason(err)
	s.metrics.rejected.WithLabelValues(why).Add(float64(max(points, 1)))
	if why == "store" {
		s.logFailure(err)
	}
	return err
}

// logFailure logs why the store fails, once a minute: every collector tries again.
func (s *reportService) logFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.cfg.Now(); now.Sub(s.logged) >= time.Minute {
		s.logged = now
		slog.Error("points are not stored", "error", err)
	}
}

func reason(err error) string {
	switch {
	case errors.Is(err, report.ErrTokenExpired):
		return "expired"
	case connect.CodeOf(err) == connect.CodeUnauthenticated:
		return "unauthenticated"
	case connect.CodeOf(err) == connect.CodeInvalidArgument:
		return "invalid"
	case connect.CodeOf(err) == connect.CodeCanceled:
		return "cancelled"
	case connect.CodeOf(err) == connect.CodeResourceExhausted:
		return "full"
	}
	return "store"
}
