package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pushed is a running push source.
type pushed struct {
	url   string
	drain chan struct{}
	rec   *record
	done  chan bool
}

func startPush(t *testing.T, metrics ...string) *pushed {
	t.Helper()
	l := listen(t, "tcp", "127.0.0.1:0")
	p := &pushed{url: "http://" + l.Addr().String() + "/report", drain: make(chan struct{}), rec: newRecord(), done: make(chan bool, 1)}
	src, err := NewPush(PushConfig{Listeners: []net.Listener{l}, Metrics: metrics, Drain: p.drain, Clock: quick})
	if err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.rec.follow(t.Context(), t, src, -1) }()
	return p
}

func post(t testing.TB, client *http.Client, url, body string) (int, string) {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

func TestPushAnswers(t *testing.T) {
	tests := map[string]struct {
		metrics []string
		body    string
		status  int
		want    []string
	}{
		"an object":                       {body: `{"loss": 0.1, "step": 3}`, status: 200, want: []string{"loss=0.1 at 3"}},
		"a list":                          {body: `[{"loss": 0.1, "step": 1}, {"loss": 0.2, "acc": "0.50", "step": 2}]`, status: 200, want: []string{"loss=0.1 at 1", "loss=0.2 at 2", "acc=0.5 at 2"}},
		"what Python writes for infinity": {body: `{"loss": -Infinity}`, status: 200, want: []string{"loss=-Inf at -1"}},
		"wanted metrics only":             {metrics: []string{"loss"}, body: `{"loss": 1, "acc": 2}`, status: 200, want: []string{"loss=1 at -1"}},
		"an object without metrics":       {body: `{}`, status: 200},
		"no JSON":                         {body: `loss=1`, status: 400},
		"nothing":                         {body: ``, status: 400},
		"a list that goes wrong":          {body: `[{"loss": 0.1}, 3]`, status: 400},
		"more than there is room for":     {body: `{"x": "` + strings.Repeat("x", maxReport) + `"}`, status: 413},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := startPush(t, tc.metrics...)
			status, text := post(t, http.DefaultClient, p.url, tc.body)
			// Answered means handed over: the points are there now.
			p.rec.mu.Lock()
			var got []string
			for _, point := range inOrder(p.rec) {
				got = append(got, fmt.Sprintf("%s=%v at %d", point.Metric, point.Value, point.Step))
			}
			p.rec.mu.Unlock()
			if diff := cmp.Diff(tc.want, got); diff != "" || status != tc.status {
				t.Errorf("status %d (%s), want %d; points (-want +got):\n%s", status, text, tc.status, diff)
			}
			close(p.drain)
			if !<-p.done {
				t.Error("the source did not end")
			}
		})
	}
}

// inOrder returns the points of one source by Seq.
func inOrder(r *record) (out []collector.Point) {
	for range len(r.points) {
		var next *collector.Point
		for _, p := range r.points {
			if (len(out) == 0 || p.Seq > out[len(out)-1].Seq) && (next == nil || p.Seq < next.Seq) {
				next = &p
			}
		}
		out = append(out, *next)
	}
	return out
}

func TestPushTakesPostsOnly(t *testing.T) {
	p := startPush(t)
	resp, err := http.Get(p.url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status %d", resp.StatusCode)
	}
	if status, _ := post(t, http.DefaultClient, strings.TrimSuffix(p.url, "report"), `{}`); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	close(p.drain)
	<-p.done
}

func TestPushOverAUnixSocketFromManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	drain := make(chan struct{})
	src, err := NewPush(PushConfig{Listeners: []net.Listener{listen(t, "unix", path), listen(t, "tcp", "127.0.0.1:0")}, Drain: drain})
	if err != nil {
		t.Fatal(err)
	}
	rec := newRecord()
	done := make(chan bool)
	go func() { done <- rec.follow(t.Context(), t, src, -1) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Go(func() {
			for i := range 50 {
				v := n*50 + i
				if status, text := post(t, client, "http://collector/report", fmt.Sprintf(`{"loss": %d.5, "step": %d}`, v, v)); status != 200 {
					t.Errorf("status %d: %s", status, text)
				}
			}
		})
	}
	wait.Wait()
	client.CloseIdleConnections()
	close(drain)
	<-done
	rec.wantAll(t, 400)
}

// A consumer that stops is not answered for.
func TestPushDoesNotAnswerForWhatWasNotTaken(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	src, err := NewPush(PushConfig{Listeners: []net.Listener{l}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range src.Points(t.Context()) {
			break // after the first of two points
		}
	}()
	status, _ := post(t, http.DefaultClient, "http://"+l.Addr().String()+"/report", `{"loss": 1, "acc": 2}`)
	if status != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", status)
	}
	<-done
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

func TestPushSeqGrowsOverRestarts(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	last := int64(-1)
	for range 3 {
		l := listen(t, "tcp", "127.0.0.1:0")
		drain := make(chan struct{})
		src, err := NewPush(PushConfig{Listeners: []net.Listener{l}, Drain: drain, Clock: Clock{Now: func() time.Time { return now }}})
		if err != nil {
			t.Fatal(err)
		}
		rec, done := newRecord(), make(chan bool)
		go func() { done <- rec.follow(t.Context(), t, src, -1) }()
		post(t, http.DefaultClient, "http://"+l.Addr().String()+"/report", `[{"loss": 1}, {"loss": 2}]`)
		close(drain)
		<-done
		for _, p := range inOrder(rec) {
			if p.Seq <= last || p.Source != "push" || !p.Time.Equal(now) {
				t.Errorf("got %+v after Seq %d", p, last)
			}
			last = p.Seq
		}
		now = now.Add(time.Millisecond)
	}
}

func TestPushEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	src, err := NewPush(PushConfig{Listeners: []net.Listener{listen(t, "tcp", "127.0.0.1:0")}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	var last error
	for _, err := range src.Points(ctx) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the last error is %v", last)
	}
}
