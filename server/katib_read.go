package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"

	katibv1beta1 "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

const (
	// maxKatibPoints and maxKatibAnswer bound the points of one answer, and its bytes:
	// clients of gRPC take 4 MiB unless they are told otherwise.
	maxKatibPoints = 100_000
	maxKatibAnswer = 4<<20 - 16 // and the frame around all
	// maxKatibReading bounds the answers that are made and sent at once.
	maxKatibReading = 4
)

// errManyPoints ends the reading of a curve that is too long to be sent.
var errManyPoints = errors.New("there are too many points")

// inTurn serves a reader when there is room for the answer, until it is sent.
func (s *katibService) inTurn(next http.Handler, w http.ResponseWriter, r *http.Request) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
		next.ServeHTTP(w, r)
	case <-r.Context().Done(): // the caller waits no longer
	}
}

// GetObservationLog implements katibv1beta1.DBManagerHandler.
func (s *katibService) GetObservationLog(ctx context.Context, r *katibv1beta1.GetObservationLogRequest) (*katibv1beta1.GetObservationLogReply, error) {
	log, err := s.get(ctx, r)
	return &katibv1beta1.GetObservationLogReply{ObservationLog: log}, s.count("get", err)
}

func (s *katibService) get(ctx context.Context, r *katibv1beta1.GetObservationLogRequest) (*katibv1beta1.ObservationLog, error) {
	from, err := katibTime("start_time", r.GetStartTime())
	if err != nil {
		return nil, err
	}
	to, err := katibTime("end_time", r.GetEndTime())
	if err != nil {
		return nil, err
	}
	trial, err := s.named(ctx, r.GetTrialName())
	if err != nil {
		return nil, err
	}
	var names []string
	if r.GetMetricName() != "" {
		names = append(names, r.GetMetricName())
	}
	// One by one: everybody may ask, and a curve has any size.
	var points []collector.Point
	size := 0
	err = s.cfg.Store.Scan(ctx, trial.UID, names, func(a collector.Attempt, p collector.Point) error {
		if err := ctx.Err(); err != nil {
			return err // points outside of the stretch may have no end
		}
		if a.System() {
			return nil // Katib's readers expect what the program reported
		}
		if !from.IsZero() && p.Time.Before(from) || !to.IsZero() && p.Time.After(to) {
			return nil
		}
		if size += logSize(p); len(points) == maxKatibPoints || size > maxKatibAnswer {
			return errManyPoints
		}
		points = append(points, p)
		return nil
	})
	if errors.Is(err, errManyPoints) {
		return nil, connect.NewError(connect.CodeResourceExhausted,
			fmt.Errorf("trial %q has more such points than are given at once, %d or 4 MiB: give metric_name, start_time and end_time, and ask for one stretch after the other",
				trial.Name, maxKatibPoints))
	}
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	slices.SortStableFunc(points, func(a, b collector.Point) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Metric, b.Metric))
	})
	log := &katibv1beta1.ObservationLog{}
	for _, p := range points {
		log.MetricLogs = append(log.MetricLogs, &katibv1beta1.MetricLog{
			TimeStamp: katibStamp(p),
			Metric:    &katibv1beta1.Metric{Name: p.Metric, Value: katibValue(p)},
		})
	}
	return log, nil
}

func katibStamp(p collector.Point) string { return p.Time.UTC().Format(time.RFC3339Nano) }

func katibValue(p collector.Point) string { return cmp.Or(p.Text, collector.FormatValue(p.Value)) }

// logSize is how many bytes a point takes of an answer.
func logSize(p collector.Point) int {
	metric := 2 + protowire.SizeBytes(len(p.Metric)) + protowire.SizeBytes(len(katibValue(p)))
	return 1 + protowire.SizeBytes(2+protowire.SizeBytes(len(katibStamp(p)))+protowire.SizeBytes(metric))
}

func katibTime(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, invalid(fmt.Errorf("%s %.40q is no time: write it as 2006-01-02T15:04:05Z", field, text))
	}
	return at, nil
}

// named is the trial that a reader means.
func (s *katibService) named(ctx context.Context, name string) (collector.TrialID, error) {
	trials, err := s.cfg.Trials(ctx, name)
	if err != nil {
		return collector.TrialID{}, unavailable(ctx, err)
	}
	if pods := callerOf(ctx).pods; len(pods) > 0 {
		trials = slices.DeleteFunc(trials, func(t collector.TrialID) bool { return t.Namespace != pods[0].Trial.Namespace })
	}
	switch len(trials) {
	case 0:
		return collector.TrialID{}, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no trial %q", name))
	case 1:
		return trials[0], nil
	}
	return collector.TrialID{}, connect.NewError(connect.CodeFailedPrecondition,
		fmt.Errorf("%d trials in different namespaces are named %q, and this call cannot say which: read the Trial's status", len(trials), name))
}
