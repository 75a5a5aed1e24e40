package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

const (
	// maxReport bounds the body of one report, in bytes.
	maxReport = 1 << 20
	// pushPatience bounds how long a drain waits for a report that is being
	// sent.
	pushPatience = 2 * time.Second
)

// PushConfig describes a Push.
type PushConfig struct {
	// Listeners are where reports are taken: a unix socket, a loopback TCP
	// port, or both. Points closes them, so it can be called once.
	Listeners []net.Listener
	// Metrics are the wanted metrics; empty means all numbers in a report.
	Metrics []string
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock Clock
}

// Push takes reports over HTTP. POST /report with a JSON object, or a list of
// them, is answered with 200 once the consumer has taken all its points, 400
// when it is not such JSON (then nothing of it was taken), 413 when it is larger
// than 1 MiB and 503 when nobody takes points any more. An object is read as
// parse.JSON says. From Python, with nothing but its standard library:
//
//	import json, os, urllib.request
//	urllib.request.urlopen(os.environ["REPORT_URL"], json.dumps({"loss": 0.1, "step": 3}).encode())
//
// A report is not kept anywhere, so it cannot be read again. Seq is a counter
// that begins at the time of the start, in microseconds, so that a collector
// that starts again goes on above the numbers of the one before.
type Push struct{ cfg PushConfig }

var _ collector.Source = (*Push)(nil)

// NewPush returns a source named "push".
func NewPush(cfg PushConfig) (*Push, error) {
	if len(cfg.Listeners) == 0 {
		return nil, errors.New("a push source needs a listener")
	}
	if len(cfg.Metrics) > 0 {
		if _, err := parse.NewJSON(cfg.Metrics); err != nil {
			return nil, err
		}
	}
	cfg.Clock = cfg.Clock.orReal()
	return &Push{cfg: cfg}, nil
}

// report is one request's points on their way to the consumer.
type report struct {
	samples []parse.Sample
	taken   chan<- struct{}
}

// Points implements collector.Source.
func (p *Push) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		handler := &pushHandler{metrics: p.cfg.Metrics, reports: make(chan report), gone: make(chan struct{})}
		mux := http.NewServeMux()
		mux.Handle("POST /report", handler)
		server := &http.Server{Handler: mux, ReadTimeout: 30 * time.Second}
		served := make(chan error, len(p.cfg.Listeners))
		for _, l := range p.cfg.Listeners {
			go func() { served <- server.Serve(l) }()
		}
		r := &pushRun{cfg: p.cfg, yield: yield, seq: p.cfg.Clock.Now().UnixMicro()}
		r.serve(ctx, server, handler, served)
		close(handler.gone)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), pushPatience)
		defer cancel()
		_ = server.Shutdown(patience) // for the answers that are on their way
		_ = server.Close()
	}
}

// pushRun is one run of a Push's Points.
type pushRun struct {
	cfg   PushConfig
	yield func(collector.Point, error) bool
	seq   int64
}

// serve yields reports until the server is drained or ctx ends.
func (r *pushRun) serve(ctx context.Context, server *http.Server, h *pushHandler, served <-chan error) {
	var drained chan struct{}
	drain := r.cfg.Drain
	for {
		select {
		case rep := <-h.reports:
			if !r.take(rep) {
				return
			}
		case err := <-served:
			if !errors.Is(err, http.ErrServerClosed) && !r.yield(collector.Point{}, fmt.Errorf("push: %w", err)) {
				return
			}
		case <-drain:
			drain, drained = nil, make(chan struct{})
			go func() {
				defer close(drained)
				patience, cancel := context.WithTimeout(ctx, pushPatience)
				defer cancel()
				_ = server.Shutdown(patience) // what is not sent by then fails at its sender
			}()
		case <-drained:
			return
		case <-ctx.Done():
			r.yield(collector.Point{}, ctx.Err())
			return
		}
	}
}

// take yields the points of one report and answers it.
func (r *pushRun) take(rep report) bool {
	for _, s := range rep.samples {
		p := collector.Point{
			Metric: s.Metric, Value: s.Value, Text: s.Text, Step: s.Step, Time: s.Time,
			Source: "push", Seq: r.seq,
		}
		if p.Time.IsZero() {
			p.Time = r.cfg.Clock.Now()
		}
		r.seq++
		if !r.yield(p, nil) {
			return false
		}
	}
	close(rep.taken)
	return true
}

// pushHandler turns requests into reports.
type pushHandler struct {
	metrics []string
	reports chan report
	gone    chan struct{} // closed when nobody takes reports any more
	parsers sync.Pool
}

// ServeHTTP implements http.Handler.
func (h *pushHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxReport))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return
	}
	samples, err := h.parse(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	taken := make(chan struct{})
	select {
	case h.reports <- report{samples, taken}:
	case <-h.gone:
		http.Error(w, "the collector has ended", http.StatusServiceUnavailable)
		return
	case <-req.Context().Done():
		return
	}
	select {
	case <-taken:
	case <-h.gone:
		select {
		case <-taken:
		default:
			http.Error(w, "the collector has ended", http.StatusServiceUnavailable)
		}
	}
}

func (h *pushHandler) parse(body []byte) ([]parse.Sample, error) {
	parser, ok := h.parsers.Get().(*parse.JSON)
	if !ok {
		parser = parse.NewAnyJSON()
		if len(h.metrics) > 0 {
			var err error
			if parser, err = parse.NewJSON(h.metrics); err != nil {
				return nil, err
			}
		}
	}
	defer h.parsers.Put(parser)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, errors.New("the report is empty: send a JSON object")
	}
	return parser.ParseAll(nil, body)
}
