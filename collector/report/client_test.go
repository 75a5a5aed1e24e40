package report_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

var (
	key     = bytes.Repeat([]byte("k"), report.MinKeySize)
	trial   = collector.TrialID{Namespace: "ns", Name: "random-0001", UID: "uid-1"}
	attempt = collector.Attempt{ID: "pod/0", Started: time.Unix(1_700_000_000, 0).UTC()}
)

// numbers yields n points and, after Drain, ends. As a file does, it begins anew
// each time.
type numbers struct {
	source string
	n      int64
	drain  <-chan struct{}
	errs   map[int64]error // yielded before the point
}

func (s numbers) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for i := range s.n {
			if err := s.errs[i]; err != nil && !yield(collector.Point{}, err) {
				return
			}
			if !yield(s.point(i), nil) {
				return
			}
		}
		select {
		case <-s.drain:
		case <-ctx.Done():
			yield(collector.Point{}, ctx.Err())
		}
	}
}

func (s numbers) point(i int64) collector.Point {
	return collector.Point{Metric: "loss", Value: float64(i), Step: i, Seq: i * 10, Source: s.source, Time: attempt.Started}
}

func (s numbers) all() (points []collector.Point) {
	for i := range s.n {
		points = append(points, s.point(i))
	}
	return points
}

// service is the real report service behind a front that may misbehave.
type service struct {
	store collector.Store
	dial  func(token string) (vernierv1.ReportServiceClient, error)
	calls atomic.Int64
	// front decides about each request; nil passes it on.
	front func(w http.ResponseWriter, r *http.Request, next http.Handler)
	next  http.Handler
}

func newService(t *testing.T, front func(http.ResponseWriter, *http.Request, http.Handler)) *service {
	t.Helper()
	s := openService(t, "sqlite:"+t.TempDir()+"/points.db", 0, front)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.dial = func(token string) (vernierv1.ReportServiceClient, error) {
		return report.Dial(report.DialConfig{URL: "http://" + l.Addr().String(), Token: token})
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l, s, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// openService is one that cannot be dialed yet. It takes at most limit points of a
// trial; 0 is no limit.
func openService(t *testing.T, address string, limit int64, front func(http.ResponseWriter, *http.Request, http.Handler)) *service {
	t.Helper()
	s := &service{front: front}
	var err error
	if s.store, err = store.Open(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	limited, err := server.LimitStore(s.store, server.Quota{TrialPoints: limit}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, s.next, err = server.NewReportHandler(server.ReportConfig{Store: limited, Keys: func() [][]byte { return [][]byte{key} }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	if s.front != nil {
		s.front(w, r, s.next)
		return
	}
	s.next.ServeHTTP(w, r)
}

func (s *service) config(t *testing.T, token string, sources ...collector.Source) report.Config {
	t.Helper()
	if token == "" {
		var err error
		if token, err = report.Sign(key, report.Claims{Trial: trial, Expires: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	client, err := s.dial(token)
	if err != nil {
		t.Fatal(err)
	}
	return report.Config{Attempt: attempt, Metrics: []string{"loss"}, Service: client,
		Sources: func(map[string]int64) ([]collector.Source, error) { return sources, nil }}
}

// wantStored checks that exactly the points of the sources are in the store.
func (s *service) wantStored(t *testing.T, final bool, sources ...numbers) {
	t.Helper()
	series, err := collector.ReadSeries(t.Context(), s.store, trial.UID)
	if err != nil || len(series) != 1 {
		t.Fatalf("%d series, %v", len(series), err)
	}
	bySource := map[string][]collector.Point{}
	for _, p := range series[0].Points {
		bySource[p.Source] = append(bySource[p.Source], p)
	}
	want := map[string][]collector.Point{}
	for _, src := range sources {
		want[src.source] = src.all()
	}
	if d := cmp.Diff(want, bySource); d != "" {
		t.Errorf("points (-want +got):\n%s", d)
	}
	states, err := s.store.Attempts(t.Context(), trial.UID)
	if err != nil || len(states) != 1 || states[0].Final != final {
		t.Errorf("attempts %+v, %v", states, err)
	}
}

// lives are clients that run one after the other, since they are killed.
type lives struct {
	mu     sync.Mutex
	random *rand.Rand
	kill   context.CancelFunc // of the one that runs
}

func newLives(seed, stream uint64) *lives {
	return &lives{random: rand.New(rand.NewPCG(seed, stream))}
}

// roll throws a die and returns what kills the client that runs now.
func (l *lives) roll(sides int) (dice int, kill func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.IntN(sides), l.kill
}

// run lets clients run until one comes to its end.
func (l *lives) run(t *testing.T, next func() report.Config) {
	t.Helper()
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		l.mu.Lock()
		l.kill = cancel
		l.mu.Unlock()
		_, err := report.NewClient(next()).Run(ctx)
		cancel()
		if err == nil {
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	t.Fatal("200 lives were not enough")
}

func over() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestSeveralSourcesArriveWhole(t *testing.T) { synctest.Test(t, severalSources) }

func severalSources(t *testing.T) {
	s := newDirectService(t, 0, nil)
	a := numbers{source: "a", n: 3*report.MaxBatch + 5, drain: over()}
	b := numbers{source: "b", n: 10, drain: over()}
	cfg := s.config(t, "", a, b)
	cfg.Drain = over()
	summary, err := report.NewClient(cfg).Run(t.Context())
	if err != nil || !summary.Final || summary.Metrics[0].Count != a.n+b.n || summary.Note != "" {
		t.Errorf("%+v, %v", summary, err)
	}
	s.wantStored(t, true, a, b)
	if n := s.calls.Load(); n > 6 {
		t.Errorf("%d calls for four batches", n)
	}
}

// The service fails, and the client is killed, at random points: before a call
// arrives, or after it was carried out but before the answer.
func TestNothingIsLostOrDoubledHoweverOftenBothSidesFail(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			lives := newLives(seed, 1)
			s := newService(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				dice, kill := lives.roll(10)
				switch dice {
				case 0:
					http.Error(w, "away", http.StatusBadGateway)
				case 1: // carried out, but the answer is lost
					next.ServeHTTP(&discard{http.Header{}}, r)
					http.Error(w, "away", http.StatusServiceUnavailable)
				case 2:
					kill()
					next.ServeHTTP(w, r)
				case 3:
					next.ServeHTTP(w, r)
					kill()
				default:
					next.ServeHTTP(w, r)
				}
			})
			src := numbers{source: "stdout", n: 6*report.MaxBatch + 7, drain: over()}
			lives.run(t, func() report.Config {
				cfg := s.config(t, "", src)
				cfg.Drain = over()
				return cfg
			})
			s.wantStored(t, true, src)
		})
	}
}

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func TestPointsArriveWhileTheProgramRuns(t *testing.T) {
	s := newService(t, nil)
	drain := make(chan struct{})
	src := numbers{source: "stdout", n: 3, drain: drain}
	cfg := s.config(t, "", src)
	cfg.Drain = drain
	ended := make(chan error, 1)
	go func() {
		_, err := report.NewClient(cfg).Run(t.Context())
		ended <- err
	}()
	for {
		states, err := s.store.Attempts(t.Context(), trial.UID)
		if err != nil {
			t.Fatal(err)
		}
		if len(states) == 1 && states[0].Acked["stdout"] == 21 {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended before the drain: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	s.wantStored(t, false, src)
	close(drain)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.wantStored(t, true, src)
}

func TestWhatCouldNotBeReadIsNoted(t *testing.T) {
	s := newService(t, nil)
	src := numbers{source: "stdout", n: 9, drain: over(), errs: map[int64]error{}}
	for i := range src.n {
		src.errs[i] = fmt.Errorf("line %d is odd", i)
	}
	cfg := s.config(t, "", src)
	cfg.Drain = over()
	if _, err := report.NewClient(cfg).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantStored(t, true, src)
	states, _ := s.store.Attempts(t.Context(), trial.UID)
	if note := states[0].Note; !strings.Contains(note, "line 0 is odd") || !strings.Contains(note, "and 8 more of the kind") {
		t.Errorf("note %q", note)
	}
}

func TestABadTokenIsNotWaitedForAtTheEnd(t *testing.T) {
	s := newService(t, nil)
	token, err := report.Sign(bytes.Repeat([]byte("x"), report.MinKeySize), report.Claims{Trial: trial, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.config(t, token, numbers{source: "stdout", n: 2 * report.MaxBatch, drain: over()})
	cfg.Drain = over()
	summary, err := report.NewClient(cfg).Run(t.Context()) // Abandon is never closed
	if !errors.Is(err, report.ErrNotDelivered) || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("%v", err)
	}
	if summary.Final || summary.Metrics[0].Count != 2*report.MaxBatch || !strings.Contains(summary.Note, "not signed with any of the keys): the curve lacks them") {
		t.Errorf("summary %+v", summary)
	}
}

func TestAnAbandonedServiceLeavesTheSummaryWhole(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // it is down
		http.Error(w, "down", http.StatusServiceUnavailable)
	})
	abandon := make(chan struct{})
	src := numbers{source: "stdout", n: 3 * report.MaxBatch, drain: over()}
	cfg := s.config(t, "", src)
	cfg.Drain, cfg.Abandon = over(), abandon
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		summary, err := report.NewClient(cfg).Run(t.Context())
		if !errors.Is(err, report.ErrNotDelivered) || summary.Final || summary.Metrics[0].Count != src.n {
			t.Errorf("%+v, %v", summary, err)
		}
		if want := fmt.Sprintf("%d points were not delivered (unavailable: ", src.n); !strings.HasPrefix(summary.Note, want) {
			t.Errorf("note %q, want %q first", summary.Note, want)
		}
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.calls.Load() < 3 {
		<-tick.C
	}
	select {
	case <-ended:
		t.Error("it gave up by itself")
	default:
	}
	close(abandon)
	<-ended
}
