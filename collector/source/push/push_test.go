package push

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
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
	t      testing.TB
	push   *Source
	base   string // where requests with the token go
	open   string // without the token
	katib  string
	client *http.Client
	drain  chan struct{}
	rec    *sourcetest.Record
	done   chan bool
	stop   func() // as a kill does: nothing is drained
}

const (
	pushToken = "t0ken"
	pushTrial = "random-0001"
)

// startPush starts a push source with all its listeners. The journal is that of
// an earlier one if its path is given.
func startPush(t testing.TB, journal string, metrics ...string) *pushed {
	t.Helper()
	return startPushBy(t, sourcetest.Quick(), journal, metrics...)
}

func startPushBy(t testing.TB, clock source.Clock, journal string, metrics ...string) *pushed {
	t.Helper()
	if journal == "" {
		journal = filepath.Join(t.TempDir(), "journal")
	}
	guarded, katib := listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
	p := &pushed{t: t, drain: make(chan struct{}), rec: sourcetest.NewRecord(), done: make(chan bool, 1), client: &http.Client{Transport: &http.Transport{}}}
	p.open = "http://" + guarded.Addr().String()
	p.base = p.open + "/" + pushToken
	p.katib = "http://" + katib.Addr().String()
	push, err := New(Config{
		Guarded: guarded, Katib: katib, Token: pushToken, Trial: pushTrial,
		Journal: journal, Artifacts: "/artifacts", Seed: "pod", Metrics: metrics, Drain: p.drain, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.push = push
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { push.Serve(ctx) })
	go func() { p.done <- p.rec.Follow(ctx, t, push, -1) }()
	p.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(p.stop)
	return p
}

// end drains the source and returns its points, in order.
func (p *pushed) end() []string {
	p.t.Helper()
	close(p.drain)
	if !<-p.done {
		p.t.Error("the source did not end")
	}
	p.rec.Mu.Lock()
	defer p.rec.Mu.Unlock()
	for _, e := range p.rec.Errs {
		if !strings.Contains(e, "was not found") { // which is another test's matter
			p.t.Errorf("errors: %q", e)
		}
	}
	return describe(inOrder(p.rec))
}

func describe(points []collector.Point) (out []string) {
	for _, p := range points {
		s := fmt.Sprintf("%s=%v at %d", p.Metric, p.Value, p.Step)
		if p.Text != "" {
			s += fmt.Sprintf(" written %s", p.Text)
		}
		out = append(out, s)
	}
	return out
}

// inOrder returns the points of one source by Seq.
func inOrder(r *sourcetest.Record) (out []collector.Point) {
	for range len(r.Points) {
		var next *collector.Point
		for _, p := range r.Points {
			if (len(out) == 0 || p.Seq > out[len(out)-1].Seq) && (next == nil || p.Seq < next.Seq) {
				next = &p
			}
		}
		out = append(out, *next)
	}
	return out
}

func (p *pushed) send(method, url, body string, header ...string) (int, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := p.client.Do(r)
	if err != nil {
		p.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Error(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func (p *pushed) report(body string, header ...string) (int, string) {
	p.t.Helper()
	return p.send(http.MethodPost, p.base+"/report", body, header...)
}

// awaitRequests waits until so many requests are being answered.
func (p *pushed) awaitRequests(n int64) {
	p.t.Helper()
	if !sourcetest.Comes(sourcetest.Patience, func() bool { return p.push.active.Load() >= n }) {
		p.t.Fatalf("%d requests were seen, %d were sent", p.push.active.Load(), n)
	}
}

func TestPushAnswers(t *testing.T) {
	tests := map[string]struct {
		metrics []string
		body    string
		status  int
		want    []string
	}{
		"an object":                       {body: `{"loss": 0.1, "step": 3}`, status: 200, want: []string{"loss=0.1 at 3"}},
		"a list":                          {body: `[{"loss": 0.1, "step": 1}, {"loss": 0.2, "acc": "0.50", "step": 2}]`, status: 200, want: []string{"loss=0.1 at 1", "loss=0.2 at 2", "acc=0.5 at 2 written 0.50"}},
		"what Python writes for infinity": {body: `{"loss": -Infinity, "acc": NaN}`, status: 200, want: []string{"loss=-Inf at -1 written -Infinity", "acc=NaN at -1"}},
		"wanted metrics only":             {metrics: []string{"loss"}, body: `{"loss": 1, "acc": 2}`, status: 200, want: []string{"loss=1 at -1"}},
		"an object without metrics":       {body: `{}`, status: 200},
		"no JSON":                         {body: `loss=1`, status: 400},
		"nothing":                         {body: ``, status: 400},
		"a list that goes wrong":          {body: `[{"loss": 0.1}, 3]`, status: 400},
		"more than there is room for":     {body: `{"x": "` + strings.Repeat("x", maxBody) + `"}`, status: 413},
		"more points than a request has":  {body: `[` + strings.Repeat(`{"x":1},`, maxReportPoints) + `{"x":1}]`, status: 413},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := startPush(t, "", tc.metrics...)
			status, text := p.report(tc.body)
			if status != tc.status {
				t.Errorf("status %d (%s), want %d", status, text, tc.status)
			}
			if diff := cmp.Diff(tc.want, p.end()); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPushGuardsItsAddress(t *testing.T) {
	p := startPush(t, "")
	for name, tc := range map[string]struct {
		method, url string
		want        int
	}{
		"without the token":        {"POST", p.open + "/report", 403},
		"with another token":       {"POST", p.open + "/t0kem/report", 403},
		"with a prefix of it":      {"POST", p.open + "/t0ke/report", 403},
		"with the token alone":     {"POST", p.base, 404},
		"with a path not served":   {"POST", p.base + "/reports", 404},
		"with the wrong method":    {"GET", p.base + "/report", 405},
		"MLflow without the token": {"POST", p.open + "/api/2.0/mlflow/runs/create", 403},
	} {
		if status, text := p.send(tc.method, tc.url, `{"loss": 1}`); status != tc.want {
			t.Errorf("%s: status %d (%s), want %d", name, status, text, tc.want)
		}
	}
	if got := p.end(); got != nil {
		t.Errorf("points: %v", got)
	}
}

func TestPushOverAUnixSocketFromManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	p := &pushed{t: t, drain: make(chan struct{}), rec: sourcetest.NewRecord(), done: make(chan bool, 1)}
	src, err := New(Config{Trusted: listen(t, "unix", path), Journal: path + ".journal", Drain: p.drain})
	if err != nil {
		t.Fatal(err)
	}
	go src.Serve(t.Context())
	go func() { p.done <- p.rec.Follow(t.Context(), t, src, -1) }()
	p.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Go(func() {
			for i := range 50 {
				v := n*50 + i
				if status, text := p.send("POST", "http://collector/report", fmt.Sprintf(`{"loss": %d.5, "step": %d}`, v, v)); status != 200 {
					t.Errorf("status %d: %s", status, text)
				}
			}
		})
	}
	wait.Wait()
	p.client.CloseIdleConnections()
	p.end()
	p.rec.WantAll(t, 400)
}

func TestPushSaysWhyNot(t *testing.T) {
	for want, errs := range map[int][]error{
		http.StatusGone:                  {fmt.Errorf("x: %w", errJournalClosed)},
		http.StatusInsufficientStorage:   {errJournalFull, &os.PathError{Op: "write", Err: syscall.ENOSPC}},
		http.StatusServiceUnavailable:    {errNoRoom},
		http.StatusRequestEntityTooLarge: {errJournalLine, errTooLarge},
		http.StatusRequestTimeout:        {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}},
		http.StatusBadRequest:            {io.ErrUnexpectedEOF},
		http.StatusInternalServerError:   {io.ErrClosedPipe},
	} {
		for _, err := range errs {
			if got := statusOf(err); got != want {
				t.Errorf("%v: status %d, want %d", err, got, want)
			}
		}
	}
}

func TestPushTellsWhyAListenerIsMissing(t *testing.T) {
	drain := sourcetest.Closed()
	push, err := New(Config{
		Trusted: listen(t, "unix", filepath.Join(t.TempDir(), "s")), Journal: filepath.Join(t.TempDir(), "j"),
		Trouble: io.ErrClosedPipe, Drain: drain, Clock: sourcetest.Quick(),
	})
	if err != nil {
		t.Fatal(err)
	}
	go push.Serve(t.Context())
	var errs []error
	for _, err := range push.Points(t.Context()) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || errs[0] == nil || !strings.Contains(errs[0].Error(), io.ErrClosedPipe.Error()) {
		t.Errorf("errors: %v", errs)
	}
}

func TestPushIsRefusedWithoutWhatItNeeds(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer sourcetest.Shut(t, l)
	journal := filepath.Join(t.TempDir(), "j")
	for name, cfg := range map[string]Config{
		"no token":               {Journal: journal, Guarded: l},
		"no place for a journal": {Journal: filepath.Join(journal, "x", "y"), Trusted: l},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
