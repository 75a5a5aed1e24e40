package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

// failing fails the next Append.
type failing struct {
	collector.Store
	err error
}

func (f *failing) Append(ctx context.Context, trial collector.TrialID, attempt collector.Attempt, points []collector.Point) error {
	if err := f.err; err != nil {
		f.err = nil
		return err
	}
	return f.Store.Append(ctx, trial, attempt, points)
}

func memory(t *testing.T) collector.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func limit(t *testing.T, s collector.Store, q server.Quota) collector.Store {
	t.Helper()
	limited, err := server.LimitStore(s, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return limited
}

func isFull(err error) bool { return errors.Is(err, server.ErrQuota) }

var podAttempt = collector.Attempt{ID: "pod/0", Started: time.Unix(1, 0)}

// lines are n points of a log whose lines have 10 bytes, from the given line on.
func lines(from, n int64) (points []collector.Point) {
	for i := from; i < from+n; i++ {
		points = append(points, collector.Point{Metric: "loss", Value: float64(i), Step: i, Source: "stdout", Seq: i * 10})
	}
	return points
}

func TestOfOneTrialSoManyPointsAreStored(t *testing.T) { synctest.Test(t, soManyPoints) }

func soManyPoints(t *testing.T) {
	s := limit(t, memory(t), server.Quota{TrialPoints: 1000})
	send := func(from, n int64) error { return s.Append(t.Context(), trial, podAttempt, lines(from, n)) }
	for i := range int64(90) {
		if err := send(i*10, 10); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 { // what is sent again is stored once
		if err := send(0, 10); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(900, 100); err == nil || isFull(err) || !strings.Contains(err.Error(), "counted again") {
		t.Errorf("before the next count: %v", err)
	}
	time.Sleep(time.Minute) //nolint:forbidigo // the clock of a synctest bubble
	if err := send(900, 100); err != nil {
		t.Errorf("the last points that fit: %v", err)
	}
	time.Sleep(time.Minute) //nolint:forbidigo // the clock of a synctest bubble
	if err := send(1000, 1); !errors.Is(err, server.ErrQuota) || !strings.Contains(err.Error(), "collector-rate") {
		t.Fatalf("one more: %v", err)
	}
	other := collector.TrialID{Namespace: "ns", Name: "random-0002", UID: "uid-2"}
	if err := errors.Join(
		s.Append(t.Context(), other, podAttempt, lines(0, 10)), s.Finish(t.Context(), trial, podAttempt, "note"),
	); err != nil {
		t.Errorf("another trial, and the end of this one: %v", err)
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
	points := memory(t)
	if err := points.Append(t.Context(), trial, podAttempt, lines(0, 900)); err != nil {
		t.Fatal(err)
	}
	s := limit(t, points, server.Quota{TrialPoints: 1000})
	if err := s.Append(t.Context(), trial, podAttempt, lines(900, 101)); err == nil {
		t.Error("1,001 points are taken")
	}
	if err := s.Append(t.Context(), trial, podAttempt, lines(900, 100)); err != nil {
		t.Error(err)
	}
}

func TestWhatTheStoreDidNotTakeDoesNotCount(t *testing.T) {
	f := &failing{Store: memory(t)}
	s := limit(t, f, server.Quota{TrialPoints: 10})
	for range 5 {
		f.err = errors.New("down")
		if err := s.Append(t.Context(), trial, podAttempt, lines(0, 10)); err == nil {
			t.Fatal("no error")
		}
	}
	if err := s.Append(t.Context(), trial, podAttempt, lines(0, 10)); err != nil {
		t.Error(err)
	}
}

// Three trials of one namespace fill its quota, and another namespace has its own.
func TestANamespaceCannotFillTheStoreForOthers(t *testing.T) { synctest.Test(t, namespaceQuota) }

func namespaceQuota(t *testing.T) {
	for name, q := range map[string]server.Quota{
		"points": {TrialPoints: 1000, NamespacePoints: 2000},
		"bytes":  {TrialPoints: 1000, NamespaceBytes: 2000 * 41},
	} {
		registry := prometheus.NewRegistry()
		s, err := server.LimitStore(memory(t), q, registry)
		if err != nil {
			t.Fatal(err)
		}
		stored := 0
		for i := range 30 {
			id := collector.TrialID{Namespace: "greedy", Name: fmt.Sprint("t-", i%3), UID: fmt.Sprint("uid-", i%3)}
			if err := s.Append(t.Context(), id, podAttempt, lines(int64(i/3)*100, 100)); err == nil {
				stored += 100
			} else if !errors.Is(err, server.ErrQuota) && !strings.Contains(err.Error(), "counted again") {
				t.Fatalf("%s: %v", name, err)
			}
			time.Sleep(time.Minute) //nolint:forbidigo // the clock of a synctest bubble
		}
		if stored != 2000 {
			t.Errorf("%s: %d points of the namespace are stored, want 2000", name, stored)
		}
		modest := collector.TrialID{Namespace: "modest", Name: "t-0", UID: "uid"}
		if err := s.Append(t.Context(), modest, podAttempt, lines(0, 1000)); err != nil {
			t.Errorf("%s: another namespace: %v", name, err)
		}
		greedy := collector.TrialID{Namespace: "greedy", Name: "t-0", UID: "uid-0"}
		if err := errors.Join(s.Finish(t.Context(), greedy, podAttempt, "a note"), s.Finish(t.Context(), modest, podAttempt, "")); err != nil {
			t.Fatal(err)
		}
		for uid, want := range map[string]string{"uid-0": "a note; namespace greedy uses 100 %", "uid": ""} {
			states, err := s.Attempts(t.Context(), uid)
			if err != nil || len(states) != 1 || !strings.HasPrefix(states[0].Note, want) || want == "" && states[0].Note != "" {
				t.Errorf("%s: attempts %+v, %v: want the note %q", name, states, err, want)
			}
		}
		if n, err := testutil.GatherAndCount(registry, "vernier_store_namespace_used_ratio"); n != 2 || err != nil {
			t.Errorf("%s: the use of %d namespaces is shown, %v", name, n, err)
		}
	}
}

// Two managers that have one store see each other's points a while later.
func TestWhatAnotherManagerStoresCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := memory(t)
		quota := server.Quota{NamespacePoints: 100}
		s, other := limit(t, both, quota), limit(t, both, quota)
		a, b := collector.TrialID{Namespace: "ns", Name: "a", UID: "a"}, collector.TrialID{Namespace: "ns", Name: "b", UID: "b"}
		for i, err := range []error{
			s.Append(t.Context(), a, podAttempt, lines(0, 10)),
			other.Append(t.Context(), b, podAttempt, lines(0, 85)),
		} {
			if err != nil {
				t.Fatal(i, err)
			}
		}
		time.Sleep(10 * time.Minute) //nolint:forbidigo // the clock of a synctest bubble
		if err := s.Append(t.Context(), a, podAttempt, lines(10, 10)); !isFull(err) {
			t.Errorf("with 95 of 100 points stored, 10 more: %v", err)
		}
	})
}

// From four fifths of its quota on a namespace shows as near it, and deleting a trial
// gives it room.
func TestANamespaceNearItsQuotaIsSaidAndGetsRoom(t *testing.T) {
	registry := prometheus.NewRegistry()
	s, err := server.LimitStore(memory(t), server.Quota{NamespacePoints: 10_000}, registry)
	if err != nil {
		t.Fatal(err)
	}
	used := func() float64 {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
			t.Fatalf("%v, %v", families, err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	old := collector.TrialID{Namespace: "ns", Name: "old", UID: "old"}
	for i, want := range []struct {
		used float64
		near bool
	}{{0.4, false}, {0.8, true}} {
		if err := s.Append(t.Context(), old, podAttempt, lines(int64(i)*4000, 4000)); err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(t.Context(), old, podAttempt, ""); err != nil {
			t.Fatal(err)
		}
		states, err := s.Attempts(t.Context(), old.UID)
		if err != nil {
			t.Fatal(err)
		}
		if got := used(); got != want.used || (states[0].Note != "") != want.near {
			t.Errorf("after %d reports %v is used, note %q; want %v", i+1, got, states[0].Note, want)
		}
	}
	if err := s.Delete(t.Context(), old.UID); err != nil {
		t.Fatal(err)
	}
	next := collector.TrialID{Namespace: "ns", Name: "next", UID: "next"}
	if err := s.Append(t.Context(), next, podAttempt, lines(0, 4000)); err != nil {
		t.Errorf("a trial that needs the room: %v", err)
	}
	if got := used(); got != 0.4 {
		t.Errorf("%v is used in the end", got)
	}
}

// Attempts, sources and metrics are rows too, and a program makes up their names.
func TestNamesWithoutEndAreRefused(t *testing.T) {
	s := limit(t, memory(t), server.Quota{TrialPoints: 1 << 40})
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
}

// A manager that knew no such bound may have stored more names. Under these a trial
// goes on, and comes to its end.
func TestATrialWithTooManyNamesGoesOnUnderThem(t *testing.T) {
	before := memory(t)
	points := make([]collector.Point, 100_100)
	for i := range points {
		points[i] = collector.Point{Metric: fmt.Sprint("m", i), Source: "stdout", Seq: int64(i)}
	}
	if err := before.Append(t.Context(), trial, podAttempt, points); err != nil {
		t.Fatal(err)
	}
	s := limit(t, before, server.Quota{TrialPoints: 1 << 40})
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
	_, handler, err := server.NewReportHandler(server.ReportConfig{Store: limit(t, memory(t), server.Quota{TrialPoints: 3}),
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
