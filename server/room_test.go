package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/collector/store/storetest"
	"github.com/vernier-ml/vernier/server"
)

// asked counts what a store is asked.
type asked struct {
	collector.Store
	questions map[string]int
	broken    error // of the next Append
}

func newAsked(t *testing.T) *asked {
	t.Helper()
	s, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	return &asked{Store: s, questions: map[string]int{}}
}

func (a *asked) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if err := a.broken; err != nil {
		a.broken = nil
		return err
	}
	return a.Store.Append(ctx, trial, attempt, points)
}

func (a *asked) Attempts(ctx context.Context, uid string) ([]collector.AttemptState, error) {
	a.questions["attempts"]++
	return a.Store.Attempts(ctx, uid)
}

func (a *asked) Metrics(ctx context.Context, uid string) ([]string, error) {
	a.questions["metrics"]++
	return a.Store.Metrics(ctx, uid)
}

func (a *asked) Count(ctx context.Context, uid string) (int64, error) {
	a.questions["count"]++
	return a.Store.Count(ctx, uid)
}

var podAttempt = collector.Attempt{ID: "pod/0", Started: time.Unix(1, 0)}

// lines are n points of a log whose lines have 10 bytes, from the given line on.
func lines(from, n int64) (points []collector.Point) {
	for i := from; i < from+n; i++ {
		points = append(points, collector.Point{Metric: "loss", Value: float64(i), Step: i, Source: "stdout", Seq: i * 10})
	}
	return points
}

func TestALimitedStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, _ string) collector.Store {
		t.Helper()
		return server.LimitStore(newAsked(t).Store, 1<<40)
	}, storetest.Options{})
}

func TestOfOneTrialSoManyPointsAreStored(t *testing.T) {
	a := newAsked(t)
	s := server.LimitStore(a, 1000)
	send := func(from, n int64) error { return s.Append(t.Context(), trial, podAttempt, lines(from, n)) }
	for i := range int64(90) {
		if err := send(i*10, 10); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // what is sent again is stored once
		if err := send(0, 10); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]int{"attempts": 1, "metrics": 1, "count": 1}, a.questions); diff != "" {
		t.Errorf("questions to the store (-want +got):\n%s", diff)
	}
	if err := send(900, 100); err != nil {
		t.Errorf("the last points that fit: %v", err)
	}
	for range 100 {
		err := send(1000, 1)
		if err == nil || !strings.Contains(err.Error(), "random-0001 has 1000 points, and at most 1000 are kept: report less often") {
			t.Fatalf("one more: %v", err)
		}
	}
	if a.questions["count"] > 4 {
		t.Errorf("counted %d times", a.questions["count"])
	}
	other := collector.TrialID{Namespace: "ns", Name: "random-0002", UID: "uid-2"}
	if err := errors.Join(
		s.Append(t.Context(), other, podAttempt, lines(0, 10)), s.Finish(t.Context(), trial, podAttempt, "note"),
	); err != nil {
		t.Errorf("another trial, and the end of this one: %v", err)
	}
	if n, err := s.Count(t.Context(), trial.UID); n != 1000 || err != nil {
		t.Errorf("%d points are stored, %v", n, err)
	}
	if err := s.Delete(t.Context(), trial.UID); err != nil {
		t.Fatal(err)
	}
	if err := send(0, 1000); err != nil {
		t.Errorf("after delete: %v", err)
	}
}

// What a manager before this one stored counts. Offsets in a log are no points.
func TestWhatWasStoredBeforeCounts(t *testing.T) {
	a := newAsked(t)
	if err := a.Store.Append(t.Context(), trial, podAttempt, lines(0, 900)); err != nil {
		t.Fatal(err)
	}
	s := server.LimitStore(a, 1000)
	if err := s.Append(t.Context(), trial, podAttempt, lines(900, 101)); err == nil {
		t.Error("1,001 points are taken")
	}
	if err := s.Append(t.Context(), trial, podAttempt, lines(900, 100)); err != nil {
		t.Error(err)
	}
	if a.questions["count"] != 1 {
		t.Errorf("counted %d times", a.questions["count"])
	}
}

func TestWhatTheStoreDidNotTakeDoesNotCount(t *testing.T) {
	a := newAsked(t)
	s := server.LimitStore(a, 10)
	for range 5 {
		a.broken = errors.New("down")
		if err := s.Append(t.Context(), trial, podAttempt, lines(0, 10)); err == nil {
			t.Fatal("no error")
		}
	}
	if err := s.Append(t.Context(), trial, podAttempt, lines(0, 10)); err != nil || a.questions["count"] > 0 {
		t.Errorf("%v, counted %d times", err, a.questions["count"])
	}
}

// Attempts, sources and metrics are rows too, and a program makes up their names.
func TestNamesWithoutEndAreRefused(t *testing.T) {
	s := server.LimitStore(newAsked(t), 1<<40)
	const batch = 4096
	for i := 0; ; i++ {
		points := make([]collector.Point, batch)
		for k := range points {
			points[k] = collector.Point{Metric: fmt.Sprint("m", i*batch+k), Source: "stdout", Seq: int64(i*batch + k)}
		}
		if err := s.Append(t.Context(), trial, podAttempt, points); err != nil {
			if i < 20 || !strings.Contains(err.Error(), "report under fewer names") {
				t.Errorf("batch %d: %v", i, err)
			}
			break
		} else if i > 30 {
			t.Fatal("names are taken without end")
		}
	}
	var err error
	for i := 0; err == nil && i < 5000; i++ {
		err = s.Finish(t.Context(), trial, collector.Attempt{ID: fmt.Sprint("pod/", i)}, "note")
	}
	if err == nil {
		t.Error("attempts are taken without end")
	}
}

// A manager that knew no such bound may have stored more names. Under these a trial
// goes on, and comes to its end.
func TestATrialWithTooManyNamesGoesOnUnderThem(t *testing.T) {
	a := newAsked(t)
	points := make([]collector.Point, 100_100)
	for i := range points {
		points[i] = collector.Point{Metric: fmt.Sprint("m", i), Source: "stdout", Seq: int64(i)}
	}
	if err := a.Store.Append(t.Context(), trial, podAttempt, points); err != nil {
		t.Fatal(err)
	}
	s := server.LimitStore(a, 1<<40)
	more := func(metric string) error {
		return s.Append(t.Context(), trial, podAttempt, []collector.Point{{Metric: metric, Source: "stdout", Seq: 1e6}})
	}
	if err := errors.Join(more("m7"), s.Finish(t.Context(), trial, podAttempt, "note")); err != nil {
		t.Errorf("under names that are stored: %v", err)
	}
	if err := more("another"); !isFull(err) {
		t.Errorf("under one more: %v", err)
	}
}

func TestAFullTrialHearsThatItIs(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, handler, err := server.NewReportHandler(server.ReportConfig{Store: server.LimitStore(newAsked(t), 3),
		Keys: func() [][]byte { return [][]byte{key} }, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	defer s.Close()
	client := vernierv1.NewReportServiceClient(s.Client(), s.URL)
	send := func(n int64) error {
		ctx, call := connect.NewClientContext(t.Context())
		call.RequestHeader().Set("Authorization", "Bearer "+token(t, trial, time.Now().Add(time.Hour)))
		_, err := client.Report(ctx, &vernierv1.ReportRequest{Attempt: attempt, Points: points(n)})
		return err
	}
	if err := send(3); err != nil {
		t.Fatal(err)
	}
	err = send(4)
	var refusal *connect.Error
	if !errors.As(err, &refusal) || refusal.Code() != connect.CodeResourceExhausted || refusal.Meta().Get(report.FullHeader) == "" {
		t.Errorf("error %v", err)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP vernier_measurements_rejected_total Points not accepted, by reason (unauthenticated, expired, invalid, full, store, cancelled). A call without points, and one without a token that is good, counts as one.
		# TYPE vernier_measurements_rejected_total counter
		vernier_measurements_rejected_total{reason="full"} 4
	`), "vernier_measurements_rejected_total"); err != nil {
		t.Error(err)
	}
}
