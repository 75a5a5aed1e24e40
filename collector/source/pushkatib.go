package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector/parse"
)

// katibService is Katib's DBManager as a program in the pod of a trial sees it.
// It takes reports and nothing else.
type katibService struct {
	katibv1beta1.UnimplementedDBManagerHandler
	push *Push
}

var _ katibv1beta1.DBManagerHandler = (*katibService)(nil)

func (p *Push) katibRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(katibv1beta1.NewDBManagerHandler(&katibService{push: p}, connect.WithReadMaxBytes(maxBody)))
	faults := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The body is read here, so that there is as little of them at a time as of
		// the other protocols' bodies.
		body, release, err := p.body(w, r, maxBody)
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
	p := s.push
	if r.GetTrialName() != p.cfg.Trial {
		return nil, connect.NewError(connect.CodePermissionDenied,
			fmt.Errorf("this is the collector of trial %q; it takes no metrics of %q", p.cfg.Trial, r.GetTrialName()))
	}
	logs := r.GetObservationLog().GetMetricLogs()
	if len(logs) > maxReportPoints {
		return nil, connect.NewError(connect.CodeInvalidArgument,
			fmt.Errorf("%d points in one report; send at most %d", len(logs), maxReportPoints))
	}
	var samples []parse.Sample
	for _, l := range logs {
		if name := l.GetMetric().GetName(); p.wants(name) {
			sample := sampleOf(name, l.GetMetric().GetValue())
			// What cannot be read is left out: the time of arrival stands in.
			sample.Time, _ = time.Parse(time.RFC3339Nano, l.GetTimeStamp())
			samples = append(samples, sample)
		}
	}
	e := entry{Points: p.entryPoints(samples)}
	err := p.journal.append(func() (entry, bool) { return e, len(e.Points) > 0 }, p.state.apply)
	if err != nil {
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
