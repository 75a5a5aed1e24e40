package source

import (
	"bytes"
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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

func shut(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

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
	push   *Push
	base   string // where requests with the token go
	open   string // without the token
	katib  string
	client *http.Client
	drain  chan struct{}
	rec    *record
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
	if journal == "" {
		journal = filepath.Join(t.TempDir(), "journal")
	}
	guarded, katib := listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
	p := &pushed{t: t, drain: make(chan struct{}), rec: newRecord(), done: make(chan bool, 1), client: &http.Client{Transport: &http.Transport{}}}
	p.open = "http://" + guarded.Addr().String()
	p.base = p.open + "/" + pushToken
	p.katib = "http://" + katib.Addr().String()
	push, err := NewPush(PushConfig{
		Guarded: []net.Listener{guarded}, Katib: []net.Listener{katib}, Token: pushToken, Trial: pushTrial,
		Journal: journal, Artifacts: "/artifacts", Seed: "pod", Metrics: metrics, Drain: p.drain, Clock: quick,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.push = push
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { push.Serve(ctx) })
	go func() { p.done <- p.rec.follow(ctx, t, push, -1) }()
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
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	for _, e := range p.rec.errs {
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
	p := &pushed{t: t, drain: make(chan struct{}), rec: newRecord(), done: make(chan bool, 1)}
	src, err := NewPush(PushConfig{Trusted: []net.Listener{listen(t, "unix", path)}, Journal: path + ".journal", Drain: p.drain})
	if err != nil {
		t.Fatal(err)
	}
	go src.Serve(t.Context())
	go func() { p.done <- p.rec.follow(t.Context(), t, src, -1) }()
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
	p.rec.wantAll(t, 400)
}

// A request that is sent again after its answer was lost counts once, also when
// the collector was killed in between.
func TestPushKnowsAKeyAgain(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	first := startPush(t, journal)
	for _, want := range []string{`{"duplicate":false,"points":1}`, `{"duplicate":true,"points":1}`} {
		if status, text := first.report(`{"loss": 1}`, "Idempotency-Key", "a"); status != 200 || text != want {
			t.Errorf("status %d: %s, want %s", status, text, want)
		}
	}
	first.stop()
	<-first.done

	second := startPush(t, journal)
	second.report(`{"loss": 1}`, "Idempotency-Key", "a")
	second.report(`{"loss": 1}`, "Idempotency-Key", "b")
	second.report(`{"loss": 1}`)
	second.report(`{"loss": 1}`)
	if status, text := second.report(`{"loss": 1}`, "Idempotency-Key", strings.Repeat("k", maxKey+1)); status != 400 {
		t.Errorf("a long key: status %d: %s", status, text)
	}
	if got := second.end(); len(got) != 4 {
		t.Errorf("points: %v, want those of a, b and two without a key", got)
	}
}

// Whatever is left of the last line, the answered requests are all there and the
// torn one is not.
func TestPushSurvivesAKillAtAnyByte(t *testing.T) {
	dir := t.TempDir()
	journal := filepath.Join(dir, "journal")
	p := startPush(t, journal)
	p.report(`[{"loss": 1, "step": 1}, {"loss": 2, "step": 2}]`, "Idempotency-Key", "a")
	answered, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	p.report(`[{"loss": 3, "step": 3}, {"loss": 4, "step": 4}]`, "Idempotency-Key", "b")
	p.end()
	whole, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(answered); cut < len(whole); cut++ {
		if err := os.WriteFile(journal, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		again := startPush(t, journal)
		again.report(`[{"loss": 3, "step": 3}, {"loss": 4, "step": 4}]`, "Idempotency-Key", "b")
		again.report(`[{"loss": 1, "step": 1}, {"loss": 2, "step": 2}]`, "Idempotency-Key", "a")
		want := []string{"loss=1 at 1", "loss=2 at 2", "loss=3 at 3", "loss=4 at 4"}
		if diff := cmp.Diff(want, again.end()); diff != "" {
			t.Fatalf("cut at %d of %d (-want +got):\n%s", cut, len(whole), diff)
		}
		again.stop()
	}
}

// Points have the same identities when the journal is read again.
func TestPushIdentitiesLast(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	first := startPush(t, journal)
	first.report(`[{"loss": 1}, {"loss": 2}, {"loss": 3}]`)
	first.report(`{"loss": 4}`)
	first.end()
	second := startPush(t, journal)
	second.report(`{"loss": 5}`)
	second.end()
	for key, p := range first.rec.points {
		if diff := cmp.Diff(p, second.rec.points[key]); diff != "" {
			t.Errorf("%v (-first +second):\n%s", key, diff)
		}
	}
	if len(second.rec.points) != 5 {
		t.Errorf("%d points, want 5", len(second.rec.points))
	}
}

func TestPushTellsOfALineThatItCannotRead(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	line := `{"p":[{"m":"loss","v":"1","s":1,"t":1}]}` + "\n"
	if err := os.WriteFile(journal, []byte(line+"{broken}\n"+line), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startPush(t, journal)
	close(p.drain)
	<-p.done
	if len(p.rec.points) != 2 || len(p.rec.errs) != 1 || !strings.Contains(p.rec.errs[0], fmt.Sprint("at ", len(line))) {
		t.Errorf("%d points, errors %q", len(p.rec.points), p.rec.errs)
	}
}

func TestPushRefusesWhatComesTooLate(t *testing.T) {
	p := startPush(t, "")
	p.report(`{"loss": 1}`)
	if got := p.end(); len(got) != 1 {
		t.Errorf("points: %v", got)
	}
	for _, path := range []string{"/report", "/api/2.0/mlflow/runs/create", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainjobs/j/status"} {
		status, text := p.send("POST", p.base+path, `{"loss": 2, "trainerStatus": {"metrics": [{"name": "loss", "value": "1"}]}}`)
		if status != http.StatusGone || !strings.Contains(text, "the program has ended") {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
	p.stop()
	if conn, err := net.Dial("tcp", strings.TrimPrefix(p.open, "http://")); err == nil {
		shut(t, conn)
		t.Error("the listener is still open")
	}
}

// Slow senders of large bodies take all the room there is for those; a small
// report passes them.
func TestPushTakesSmallReportsBesideSlowLargeOnes(t *testing.T) {
	p := startPush(t, "")
	const slow = maxBodies/maxBody + 2
	for range slow {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.open, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, conn)
		fmt.Fprintf(conn, "POST /%s/report HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n[", pushToken, maxBody)
	}
	for p.push.active.Load() < slow {
		select {
		case <-t.Context().Done():
			t.Fatal("the requests were not seen")
		case <-time.After(time.Millisecond):
		}
	}
	if status, text := p.report(`{"loss": 1}`); status != 200 {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestPushSaysWhyNot(t *testing.T) {
	for want, errs := range map[int][]error{
		http.StatusGone:                  {fmt.Errorf("x: %w", errJournalClosed)},
		http.StatusInsufficientStorage:   {errJournalFull, &os.PathError{Op: "write", Err: syscall.ENOSPC}},
		http.StatusServiceUnavailable:    {errNoRoom},
		http.StatusRequestEntityTooLarge: {errJournalLine, &http.MaxBytesError{Limit: 1}},
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

// A request that is on its way when the program ends is taken.
func TestPushWaitsForWhatIsOnItsWay(t *testing.T) {
	p := startPush(t, "")
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.open, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, conn)
	body := `{"loss": 7}`
	fmt.Fprintf(conn, "POST /%s/report HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", pushToken, len(body), body[:3])
	for p.push.active.Load() == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("the request was not seen")
		case <-time.After(time.Millisecond):
		}
	}
	close(p.drain)
	if _, err := io.WriteString(conn, body[3:]); err != nil {
		t.Fatal(err)
	}
	<-p.done
	if diff := cmp.Diff([]string{"loss=7 at -1"}, describe(inOrder(p.rec))); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

func TestPushSaysWhenItsSpaceIsUsedUp(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	drain := make(chan struct{})
	l := listen(t, "tcp", "127.0.0.1:0")
	push, err := NewPush(PushConfig{Guarded: []net.Listener{l}, Token: "t", Journal: journal, JournalLimit: 150, Drain: drain})
	if err != nil {
		t.Fatal(err)
	}
	go push.Serve(t.Context())
	p := &pushed{t: t, client: http.DefaultClient, base: "http://" + l.Addr().String() + "/t"}
	statuses := map[int]int{}
	for range 5 {
		status, text := p.report(`{"loss": 1}`)
		statuses[status]++
		if status == 507 && !strings.Contains(text, "used up") {
			t.Errorf("it says %q", text)
		}
	}
	if statuses[200] == 0 || statuses[507] == 0 || statuses[200]+statuses[507] != 5 {
		t.Errorf("statuses: %v", statuses)
	}
	close(drain)
	n := 0
	for _, err := range push.Points(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != statuses[200] {
		t.Errorf("%d points, %d were answered", n, statuses[200])
	}
	if info, err := os.Stat(journal); err != nil || info.Size() > 150 {
		t.Errorf("the journal: %v, %v", info, err)
	}
}

// Connections beyond the limit wait; they neither fail nor crowd out others.
func TestPushBoundsItsConnections(t *testing.T) {
	inner := listen(t, "tcp", "127.0.0.1:0")
	l := limited(inner, 2)
	accepted := make(chan net.Conn, 3)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, c)
	}
	first := <-accepted
	<-accepted
	select {
	case <-accepted:
		t.Fatal("the third was accepted beside two")
	default:
	}
	for range 2 { // closing twice frees one place
		_ = first.Close()
	}
	<-accepted
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, more := <-accepted; more {
		t.Error("a fourth was accepted")
	}
}

func TestPushEndsWithItsContext(t *testing.T) {
	p := startPush(t, "")
	p.report(`{"loss": 1}`)
	p.stop()
	if <-p.done && p.push.failure() != nil {
		t.Errorf("it failed: %v", p.push.failure())
	}
}

func TestPushTellsWhyAListenerIsMissing(t *testing.T) {
	drain := make(chan struct{})
	close(drain)
	push, err := NewPush(PushConfig{
		Trusted: []net.Listener{listen(t, "unix", filepath.Join(t.TempDir(), "s"))}, Journal: filepath.Join(t.TempDir(), "j"),
		Trouble: io.ErrClosedPipe, Drain: drain, Clock: quick,
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
	defer shut(t, l)
	journal := filepath.Join(t.TempDir(), "j")
	for name, cfg := range map[string]PushConfig{
		"no listener":            {Journal: journal},
		"no token":               {Journal: journal, Guarded: []net.Listener{l}},
		"no trial":               {Journal: journal, Katib: []net.Listener{l}},
		"no place for a journal": {Journal: filepath.Join(journal, "x", "y"), Trusted: []net.Listener{l}},
		"an impossible metric":   {Journal: journal, Trusted: []net.Listener{l}, Metrics: []string{""}},
	} {
		if _, err := NewPush(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzPush sends any body to every call: it is answered, and what is answered
// with success is read back from the journal.
func FuzzPush(f *testing.F) {
	for path, body := range map[string]string{
		"/report": `[{"loss": NaN, "step": 3}]`,
		"/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainjobs/j/status": `{"trainerStatus":{"lastUpdatedTime":"2026-01-01T00:00:00Z","metrics":[{"name":"loss","value":"0.1"}]}}`,
		"/api/2.0/mlflow/runs/log-batch":                                      `{"run_id":"x","metrics":[{"key":"loss","value":Infinity,"timestamp":"1","step":2.0}],"params":[{"key":"a","value":"b"}],"tags":[]}`,
		"/api/2.0/mlflow/runs/search":                                         `{"experiment_ids":["0"],"filter":"tags.a = 'b' and params.c != \"d\"","max_results":1}`,
		"/api/2.0/mlflow/experiments/create":                                  `{"name":"e","tags":[{"key":"k","value":1}]}`,
	} {
		f.Add(path, []byte(body))
	}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		journal := filepath.Join(t.TempDir(), "j")
		push, err := NewPush(PushConfig{Trusted: []net.Listener{nil}, Journal: journal, Clock: quick})
		if err != nil {
			t.Fatal(err)
		}
		h := push.routes()
		run := do(h, "POST", "/api/2.0/mlflow/runs/create", []byte(`{"experiment_id":"0"}`))
		if run.status != 200 {
			t.Fatalf("create a run: %d %s", run.status, run.body.Bytes())
		}
		id, err := push.state.mlflow.newID(mlflowExperiment) // any state may be read
		if err != nil || id == "" {
			t.Fatal(id, err)
		}
		for _, o := range push.state.mlflow.list(mlflowRun) {
			body = bytes.ReplaceAll(body, []byte(`"x"`), []byte(`"`+o.ID+`"`))
		}
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " ?#%\r\n") {
			path = "/report"
		}
		first := do(h, "POST", path, body)
		if first.status < 200 || first.status >= 600 || first.status == 500 {
			t.Errorf("status %d: %s", first.status, first.body.Bytes())
		}
		push.journal.close()
		var points []collector.Point
		for p, err := range push.Points(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			points = append(points, p)
		}
		again, err := NewPush(PushConfig{Trusted: []net.Listener{nil}, Journal: journal, Clock: quick})
		if err != nil {
			t.Fatal(err)
		}
		again.journal.close()
		i := 0
		for p := range again.Points(t.Context()) {
			if i < len(points) && (p.Seq != points[i].Seq || p.Metric != points[i].Metric) {
				t.Errorf("point %d is %v, then %v", i, points[i], p)
			}
			i++
		}
		if i != len(points) {
			t.Errorf("%d points, then %d", len(points), i)
		}
	})
}

// answered is an http.ResponseWriter that keeps what it is given.
type answered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answered) Header() http.Header { return a.header }

func (a *answered) WriteHeader(status int) { a.status = status }

func (a *answered) Write(b []byte) (int, error) { return a.body.Write(b) }

func do(h http.Handler, method, path string, body []byte) *answered {
	r, err := http.NewRequest(method, "http://x"+path, bytes.NewReader(body))
	a := &answered{header: http.Header{}, status: 200}
	if err != nil {
		a.status = 400
		return a
	}
	h.ServeHTTP(a, r)
	return a
}

// BenchmarkPushReport is one client that reports one point a request.
func BenchmarkPushReport(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s")
	push, err := NewPush(PushConfig{Trusted: []net.Listener{listen(b, "unix", path)}, Journal: path + ".journal"})
	if err != nil {
		b.Fatal(err)
	}
	go push.Serve(b.Context())
	p := &pushed{t: b, client: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}}
	for b.Loop() {
		if status, text := p.send("POST", "http://collector/report", `{"loss": 0.125, "step": 1}`); status != 200 {
			b.Fatal(status, text)
		}
	}
}
