package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	katibv1beta1 "github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/server"
)

// epochs appends points of a metric, one for each second.
func (k *katib) epochs(t *testing.T, n int64, metric, text string) {
	t.Helper()
	for from := int64(0); from < n; from += 8000 {
		var points []collector.Point
		for i := from; i < min(n, from+8000); i++ {
			points = append(points, collector.Point{Metric: metric, Value: 1 / float64(i+3), Text: text, Step: i, Seq: i,
				Time: katibNow.Add(time.Duration(i) * time.Second), Source: "file:/" + metric})
		}
		if err := k.store.Append(t.Context(), trial, collector.Attempt{ID: "pod/0", Started: katibNow}, points); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAnswerIsAsLongAsClientsTake(t *testing.T) {
	long := strings.Repeat("x", 200)
	tests := map[string]struct {
		points  int64
		metric  string
		text    string
		request *katibv1beta1.GetObservationLogRequest
		want    int // points; 0: too many
	}{
		"a usual curve":              {points: 60_000, metric: "accuracy", want: 60_000},
		"as many points, longer":     {points: 70_000, metric: "loss", text: long},
		"long names":                 {points: 20_000, metric: long},
		"a stretch of long ones":     {points: 70_000, metric: "loss", text: long, request: &katibv1beta1.GetObservationLogRequest{StartTime: "2026-01-02T04:00:00Z", EndTime: "2026-01-02T05:00:00Z"}, want: 3601},
		"so many that none fits all": {points: 100_001, metric: "m", text: "1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := newKatib(t)
			k.epochs(t, tc.points, tc.metric, tc.text)
			r := tc.request
			if r == nil {
				r = &katibv1beta1.GetObservationLogRequest{}
			}
			r.TrialName = trial.Name
			reply, err := k.client.GetObservationLog(t.Context(), r)
			if tc.want == 0 {
				if connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), "give metric_name, start_time and end_time") {
					t.Errorf("error %v", err)
				}
				return
			}
			if got := len(reply.GetObservationLog().GetMetricLogs()); got != tc.want || err != nil || proto.Size(reply) > 4<<20 {
				t.Errorf("%d points, %d bytes, %v, want %d", got, proto.Size(reply), err, tc.want)
			}
		})
	}
}

// Whatever is asked for, the manager makes a few answers at a time.
func TestReadersWaitForTheirTurn(t *testing.T) {
	k := newKatib(t)
	entered, release := make(chan struct{}, 100), make(chan struct{})
	path, handler, err := server.NewKatibHandler(server.KatibConfig{
		Store:     k.store,
		Reporters: func(context.Context, netip.Addr) ([]server.KatibReporter, error) { return nil, nil },
		Trials: func(context.Context, string) ([]collector.TrialID, error) {
			entered <- struct{}{}
			<-release
			return nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path+"GetObservationLog", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() { ask(t.Context()) })
		<-entered
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask(ctx) // waits until it gives up
	if len(entered) > 0 {
		t.Error("a fifth answer was begun")
	}
	close(release)
	readers.Wait()
}

// endless has a curve without end, whose reader hangs up.
type endless struct {
	collector.Store
	hangUp func()
	read   int
}

func (e *endless) Scan(_ context.Context, _ string, _ []string, yield func(collector.Attempt, collector.Point) error) error {
	for ; e.read < 1<<20; e.read++ {
		if e.read == 10 {
			e.hangUp()
		}
		if err := yield(collector.Attempt{}, collector.Point{Metric: "loss", Time: katibNow}); err != nil {
			return err
		}
	}
	return nil
}

// Points outside of the stretch that is asked for do not fill an answer.
func TestTheReadingEndsWithItsReader(t *testing.T) {
	k := newKatib(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := &endless{Store: k.store, hangUp: cancel}
	path, handler, err := server.NewKatibHandler(server.KatibConfig{
		Store:     s,
		Reporters: func(context.Context, netip.Addr) ([]server.KatibReporter, error) { return nil, nil },
		Trials:    func(context.Context, string) ([]collector.TrialID, error) { return []collector.TrialID{trial}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path+"GetObservationLog",
		strings.NewReader(`{"trialName": "random-0001", "startTime": "2030-01-01T00:00:00Z"}`))
	r.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if s.read != 10 {
		t.Errorf("%d points were read", s.read)
	}
}

// A unix socket tells nothing of who calls, but that it may read.
func TestOverASocketMetricsAreOnlyRead(t *testing.T) {
	k := newKatib(t)
	k.epochs(t, 3, "loss", "")
	path, handler, err := server.NewKatibHandler(server.KatibConfig{
		Store:     k.store,
		Reporters: func(context.Context, netip.Addr) ([]server.KatibReporter, error) { return k.pods, nil },
		Trials:    func(context.Context, string) ([]collector.TrialID, error) { return k.trials, nil },
		After: func(time.Duration) <-chan time.Time {
			t.Error("it waits for a pod with no address")
			return time.After(0)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "katib.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l, mux, nil) }()
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	k.client = katibv1beta1.NewDBManagerClient(&http.Client{Transport: transport}, "http://localhost", connect.WithGRPC())
	if lines, err := k.read(t, &katibv1beta1.GetObservationLogRequest{TrialName: trial.Name}); err != nil || len(lines) != 3 {
		t.Errorf("read %q, %v", lines, err)
	}
	if err := k.report(t, trial.Name, "", "loss", "0.5"); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a report: %v", err)
	}
	if _, err := k.client.DeleteObservationLog(t.Context(), &katibv1beta1.DeleteObservationLogRequest{TrialName: trial.Name}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a deletion: %v", err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
