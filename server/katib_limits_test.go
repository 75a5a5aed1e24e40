package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	katibv1beta1 "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/server"
)

// Any program that reaches the port may ask for a curve of any size.
func TestALongCurveIsRefusedWithoutReadingIt(t *testing.T) {
	k := newKatibOver(t, "sqlite:"+t.TempDir()+"/points.db")
	points := make([]collector.Point, 8192)
	const n = 1 << 20
	for from := int64(0); from < n; from += int64(len(points)) {
		for i := range points {
			points[i] = collector.Point{Metric: "loss", Value: 1, Step: from + int64(i), Time: katibNow, Source: "stdout", Seq: from + int64(i)}
		}
		if err := k.store.Append(t.Context(), trial, collector.Attempt{ID: "pod/0", Started: katibNow}, points); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := k.read(t, &katibv1beta1.GetObservationLogRequest{TrialName: trial.Name})
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("a curve of a million points was given")
	}
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 64 {
		t.Errorf("a refused question took %d MiB", got)
	}
}

// The collector of a pushing pod has its journal under the same names.
func TestReportsToTheManagerDoNotAcknowledgeTheSidecarsJournal(t *testing.T) {
	k := newKatib(t)
	sidecar := collector.Attempt{ID: "pod/0", Started: katibNow}
	p := collector.Point{Metric: "loss", Value: 1, Time: katibNow, Source: "push", Seq: 0}
	if err := k.store.Append(t.Context(), trial, sidecar, []collector.Point{p}); err != nil {
		t.Fatal(err)
	}
	if err := k.report(t, trial.Name, "", "loss", "0.5"); err != nil {
		t.Fatal(err)
	}
	states, err := k.store.Attempts(t.Context(), trial.UID)
	if err != nil {
		t.Fatal(err)
	}
	if got := states[0].Acked["push"]; got != 1 {
		t.Errorf("the sidecar's journal is acknowledged up to %d; it sent 1 byte", got)
	}
}

// Pods that start at once are all waited for at once. One for which there is no
// room must hear that it may try again, and not that it is a stranger: its program
// ends by the error.
func TestAPodThatCannotBeWaitedForIsToldToTryAgain(t *testing.T) {
	k := newKatib(t)
	waiting, patience := make(chan struct{}, 10_000), make(chan time.Time)
	path, handler, err := server.NewKatibHandler(server.KatibConfig{
		Store:     k.store,
		Reporters: func(context.Context, netip.Addr) ([]server.KatibReporter, error) { return nil, nil },
		Trials:    func(context.Context, string) ([]collector.TrialID, error) { return nil, nil },
		After: func(time.Duration) <-chan time.Time {
			waiting <- struct{}{}
			return patience
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	s := httptest.NewServer(mux)
	defer s.Close()
	client := katibv1beta1.NewDBManagerClient(s.Client(), s.URL)
	report := func(ctx context.Context) error {
		_, err := client.ReportObservationLog(ctx, &katibv1beta1.ReportObservationLogRequest{TrialName: trial.Name})
		return err
	}
	var callers sync.WaitGroup
	defer callers.Wait()
	defer close(patience)
	const room = 64
	for range room {
		callers.Go(func() { _ = report(t.Context()) }) // refused in the end
		<-waiting
	}
	if err := report(t.Context()); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("error %v, want one that says to try again", err)
	}
}

// Any program that reaches the port may send anything, and as much as it likes.
func TestOfStrangersNothingLongIsRead(t *testing.T) {
	k := newKatib(t)
	var known []server.KatibReporter
	path, handler, err := server.NewKatibHandler(server.KatibConfig{
		Store:     k.store,
		Reporters: func(context.Context, netip.Addr) ([]server.KatibReporter, error) { return known, nil },
		Trials:    func(context.Context, string) ([]collector.TrialID, error) { return []collector.TrialID{trial}, nil },
		After:     func(time.Duration) <-chan time.Time { return time.After(0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	long := &counted{}
	call := func(method string) {
		*long = counted{}
		r := httptest.NewRequest(http.MethodPost, path+method, long)
		r.Header.Set("Content-Type", "application/grpc")
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	most := map[string]int64{"ReportObservationLog": 0, "DeleteObservationLog": 0, "GetObservationLog": 128 << 10, "Other": 0}
	for method, limit := range most {
		if call(method); long.read > limit {
			t.Errorf("%s: %d bytes were read of a stranger, want at most %d", method, long.read, limit)
		}
	}
	known = k.pods
	if call("ReportObservationLog"); long.read < 1<<20 {
		t.Errorf("%d bytes were read of a report of a trial's pod", long.read)
	}
}

// counted is a message of a report, of 3 MiB, and counts what is read of it.
type counted struct{ read int64 }

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	const size = 3 << 20
	prefix := []byte{0, 0, size >> 16, 0, 0}
	n := 0
	for ; n < len(p) && c.read < size+int64(len(prefix)); n++ {
		p[n] = 0
		if c.read < int64(len(prefix)) {
			p[n] = prefix[c.read]
		}
		c.read++
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
