package push

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// maxKatibLogs bounds the points of one answer.
const maxKatibLogs = 10_000

// katibService is Katib's DBManager as a program in the pod of a trial sees it: it
// takes reports, and shows what was pushed so far in any way.
type katibService struct {
	katibv1beta1.UnimplementedDBManagerHandler
	in    *intake
	trial string
}

var _ katibv1beta1.DBManagerHandler = (*katibService)(nil)

func (s *katibService) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(katibv1beta1.NewDBManagerHandler(s, connect.WithReadMaxBytes(maxBody)))
	faults := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The body is read here, so that there is as little of them at a time as of
		// the other protocols' bodies.
		body, release, err := s.in.body(w, r, maxBody)
		if err != nil {
			_ = faults.Write(w, r, connect.NewError(katibCode(err), err)) // a client that went away needs no answer
			return
		}
		defer release()
		r.Body = io.NopCloser(bytes.NewReader(body))
		mux.ServeHTTP(w, r)
	})
}

// ReportObservationLog implements katibv1beta1.DBManagerHandler. A report has no
// identity: one that is sent twice counts twice.
func (s *katibService) ReportObservationLog(_ context.Context, r *katibv1beta1.ReportObservationLogRequest) (*katibv1beta1.ReportObservationLogReply, error) {
	if err := s.ours(r.GetTrialName()); err != nil {
		return nil, err
	}
	logs := r.GetObservationLog().GetMetricLogs()
	if len(logs) > maxReportPoints {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%w: %d; send at most %d", errTooMany, len(logs), maxReportPoints))
	}
	var samples []collector.Point
	for _, l := range logs {
		if name := l.GetMetric().GetName(); s.in.wants(name) {
			samples = append(samples, sampleOf(name, l.GetMetric().GetValue(), l.GetTimeStamp()))
		}
	}
	e := entry{Points: s.in.records(samples)}
	if err := s.in.journal.append(func() (entry, bool) { return e, len(e.Points) > 0 }); err != nil {
		return nil, connect.NewError(katibCode(err), err)
	}
	return &katibv1beta1.ReportObservationLogReply{}, nil
}

// ours refuses other trials.
func (s *katibService) ours(trial string) error {
	if trial == s.trial {
		return nil
	}
	return connect.NewError(connect.CodePermissionDenied,
		fmt.Errorf("this is the collector of trial %q; it neither takes metrics of %q nor shows them", s.trial, trial))
}

// GetObservationLog implements katibv1beta1.DBManagerHandler. It shows this pod's
// points, in the order in which they came.
func (s *katibService) GetObservationLog(_ context.Context, r *katibv1beta1.GetObservationLogRequest) (*katibv1beta1.GetObservationLogReply, error) {
	if err := s.ours(r.GetTrialName()); err != nil {
		return nil, err
	}
	bounds := [2]int64{math.MinInt64, math.MaxInt64}
	for i, text := range []string{r.GetStartTime(), r.GetEndTime()} {
		if text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("start_time and end_time are written as 2006-01-02T15:04:05Z: %w", err))
		}
		bounds[i] = at.UnixNano()
	}
	log := &katibv1beta1.ObservationLog{}
	err := s.in.journal.scan(func(e entry) (more bool) {
		for _, p := range e.Points {
			if (r.GetMetricName() == "" || p.Metric == r.GetMetricName()) && bounds[0] <= p.Time && p.Time <= bounds[1] {
				log.MetricLogs = append(log.MetricLogs, &katibv1beta1.MetricLog{
					TimeStamp: time.Unix(0, p.Time).UTC().Format(time.RFC3339Nano),
					Metric:    &katibv1beta1.Metric{Name: p.Metric, Value: cmp.Or(p.Text, p.Value)},
				})
			}
		}
		return len(log.MetricLogs) <= maxKatibLogs
	})
	if err != nil {
		return nil, connect.NewError(katibCode(err), err)
	}
	if len(log.MetricLogs) > maxKatibLogs {
		return nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("there are more than %d such points: give metric_name, start_time and end_time, and ask for one stretch after the other", maxKatibLogs))
	}
	return &katibv1beta1.GetObservationLogReply{ObservationLog: log}, nil
}

func katibCode(err error) connect.Code {
	switch {
	case errors.Is(err, errJournalClosed):
		return connect.CodeFailedPrecondition
	case errors.Is(err, errJournalLine):
		return connect.CodeInvalidArgument
	}
	switch statusOf(err) {
	case http.StatusInsufficientStorage, http.StatusRequestEntityTooLarge:
		return connect.CodeResourceExhausted
	case http.StatusServiceUnavailable:
		return connect.CodeUnavailable
	case http.StatusRequestTimeout, http.StatusBadRequest:
		return connect.CodeCanceled
	}
	return connect.CodeInternal
}
