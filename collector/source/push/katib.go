package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"

	"github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector/parse"
)

// katibService is Katib's DBManager as a program in the pod of a trial sees it.
// It takes reports and nothing else.
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
	if r.GetTrialName() != s.trial {
		return nil, connect.NewError(connect.CodePermissionDenied,
			fmt.Errorf("this is the collector of trial %q; it takes no metrics of %q", s.trial, r.GetTrialName()))
	}
	logs := r.GetObservationLog().GetMetricLogs()
	if len(logs) > maxReportPoints {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%w: %d; send at most %d", errTooMany, len(logs), maxReportPoints))
	}
	var samples []parse.Sample
	for _, l := range logs {
		if name := l.GetMetric().GetName(); s.in.wants(name) {
			samples = append(samples, sampleOf(name, l.GetMetric().GetValue(), l.GetTimeStamp()))
		}
	}
	e := entry{Points: s.in.points(samples)}
	if err := s.in.journal.append(func() (entry, bool) { return e, len(e.Points) > 0 }); err != nil {
		return nil, connect.NewError(katibCode(err), err)
	}
	return &katibv1beta1.ReportObservationLogReply{}, nil
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
