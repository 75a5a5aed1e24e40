// Package push takes what programs report over HTTP: as JSON, as the status of
// Kubeflow's Trainer, to MLflow's tracking and to Katib's report_metrics.
package push

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

const (
	// maxConnections bounds the connections of one listener; further ones wait in
	// the kernel.
	maxConnections = 256
	// A client that sends slower than this is cut off.
	headerPatience  = 10 * time.Second
	requestPatience = 30 * time.Second
	idlePatience    = 5 * time.Minute
)

// Requests may still lie in the kernel when the program has ended. The journal
// closes after a quiet time, and after maxQuiets of them in any case.
const (
	quietTime = 50 * time.Millisecond
	maxQuiets = 40
)

// Config describes a Source. Its listeners, each of which may be nil, are closed by
// Serve.
type Config struct {
	// Trusted takes requests of all that can reach it: a unix socket.
	Trusted net.Listener
	// Guarded takes requests whose path begins with Token: a loopback TCP port,
	// which on some machines other trials reach too.
	Guarded net.Listener
	// Token is the first segment of the path of a guarded request. Needed with
	// Guarded.
	Token string
	// Katib takes Katib's report_metrics: plain gRPC, for the trial named Trial.
	Katib net.Listener
	// Trial is the name that report_metrics must give.
	Trial string
	// Journal is the path of the file that keeps what was pushed.
	Journal string
	// JournalLimit bounds the journal, in bytes. Default: DefaultJournalLimit.
	JournalLimit int64
	// Artifacts is the directory in which programs find that MLflow's artifacts
	// belong.
	Artifacts string
	// Trouble says why a listener is missing, if one is: Points yields it.
	Trouble error
	// Seed makes the IDs of MLflow's runs differ from those of other trials.
	Seed string
	// Metrics are the wanted metrics; empty means all.
	Metrics []string
	// Drain is closed when the program has ended.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
}

// Source takes what programs report over HTTP.
//
// A request is answered with success once its points are in the journal, where
// neither a kill of the collector nor an absent service can lose them. Seq is the
// place in the journal. docs/collectors-push.md says which requests that are sent
// twice count once.
type Source struct {
	cfg      Config
	intake   *intake
	handlers handlers

	active atomic.Int64 // requests that are being answered
	served atomic.Int64 // requests so far

	mu     sync.Mutex
	failed error // of the servers
}

var _ collector.Source = (*Source)(nil)

// handlers are the protocols that are spoken.
type handlers struct {
	report  *reports
	trainer *trainer
	mlflow  *mlflow
	katib   *katibService
}

// New returns a source named "push" and reads the journal that an earlier
// collector left. Serve must be called to take requests.
func New(cfg Config) (*Source, error) {
	if cfg.Guarded != nil && cfg.Token == "" {
		return nil, errors.New("a push source with a guarded listener needs a token")
	}
	cfg.Clock = cfg.Clock.OrReal()
	in := newIntake(cfg)
	s := &Source{cfg: cfg, failed: cfg.Trouble, intake: in}
	h := handlers{newReports(in), newTrainer(in), newMLflow(in, cfg), &katibService{in: in, trial: cfg.Trial}}
	s.handlers = h
	var err error
	in.journal, err = openJournal(cfg.Journal, cfg.JournalLimit, func(e entry) {
		h.report.apply(e)
		h.trainer.apply(e)
		h.mlflow.apply(e)
	})
	return s, err
}

// Points implements collector.Source. It ends after the drain, once all that
// was taken is read.
func (s *Source) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		enough := false
		found := map[string]bool{}
		s.intake.journal.points(ctx, func(point collector.Point, err error) bool {
			if err == nil && len(found) < len(s.intake.wanted) {
				found[point.Metric] = true
			}
			enough = !yield(point, err)
			return !enough
		})
		if err := s.missing(found); err != nil && !enough && ctx.Err() == nil {
			enough = !yield(collector.Point{}, err)
		}
		s.mu.Lock()
		err := s.failed
		s.mu.Unlock()
		if err != nil && !enough && ctx.Err() == nil {
			yield(collector.Point{}, err)
		}
	}
}

// End returns the Seq that the next point will have at least.
func (s *Source) End() int64 { return s.intake.journal.lines.End() }

// missing says which metrics were never pushed; nil when none is missing.
func (s *Source) missing(found map[string]bool) error {
	missing := source.NotFound(s.cfg.Metrics, func(m string) bool { return found[m] })
	if len(missing) == 0 {
		return nil
	}
	there := append(slices.Sorted(maps.Keys(found)), s.intake.others.list()...)
	text := parse.NotFound(missing, there)
	if len(there) == 0 {
		text = strings.Join(missing, ", ") + " was not found: the program pushed nothing"
	}
	return &source.MissingError{Metrics: missing, Text: "push: " + text}
}

// Serve takes requests until ctx ends. After the drain it refuses them. An error
// of a listener is yielded by Points.
func (s *Source) Serve(ctx context.Context) {
	trusted := s.handlers.routes()
	var servers []*http.Server
	var running sync.WaitGroup
	start := func(l net.Listener, h http.Handler, what string) {
		if l == nil {
			return
		}
		server := newServer(s.counted(h))
		servers = append(servers, server)
		running.Go(func() {
			if err := server.Serve(netutil.LimitListener(l, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.failed = errors.Join(s.failed, fmt.Errorf("%s %s: %w", what, l.Addr(), err))
			}
		})
	}
	start(s.cfg.Trusted, trusted, "push socket")
	start(s.cfg.Guarded, guard(s.cfg.Token, trusted), "push address")
	start(s.cfg.Katib, s.handlers.katib.routes(), "address for report_metrics")
	select {
	case <-s.cfg.Drain:
		s.settle(ctx)
		<-ctx.Done()
	case <-ctx.Done():
	}
	s.intake.journal.close()
	for _, server := range servers {
		_ = server.Close() // it is of no use to know
	}
	running.Wait()
}

// settle closes the journal once nothing is asked any more.
func (s *Source) settle(ctx context.Context) {
	for range maxQuiets {
		before := s.served.Load()
		select {
		case <-s.cfg.Clock.After(quietTime):
		case <-ctx.Done():
		}
		if ctx.Err() != nil || s.active.Load() == 0 && s.served.Load() == before {
			break
		}
	}
	s.intake.journal.close()
}

func newServer(h http.Handler) *http.Server {
	s := &http.Server{
		Handler: h, Protocols: new(http.Protocols), MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: headerPatience, ReadTimeout: requestPatience,
		WriteTimeout: 2 * requestPatience, IdleTimeout: idlePatience,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxConnections},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true) // as gRPC speaks it
	return s
}

// counted counts the requests that are answered.
func (s *Source) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.active.Add(1)
		defer s.active.Add(-1)
		s.served.Add(1)
		h.ServeHTTP(w, r)
	})
}
