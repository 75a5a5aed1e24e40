package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// Limits of the servers of a Push.
const (
	// maxBody bounds the body of one request, in bytes. MLflow's own limit for
	// a batch is the same.
	maxBody = 1 << 20
	// maxBodies bounds the large bodies that are held at the same time, in
	// bytes. Those of at most smallBody do not count, so that slow senders of
	// large ones do not hold up the others.
	maxBodies = 4 << 20
	smallBody = 64 << 10
	// maxWork bounds those that are decoded at the same time, in bytes: decoded
	// they take ten times as much.
	maxWork = 1 << 20
	// maxConnections bounds the connections of one listener.
	maxConnections = 256
	// A client that sends slower than this is cut off.
	headerPatience  = 10 * time.Second
	requestPatience = 30 * time.Second
	idlePatience    = 5 * time.Minute
	// roomPatience bounds how long a request waits for room for its body.
	roomPatience = 10 * time.Second
)

// Requests may still lie in the kernel when the program has ended. The journal
// closes after a quiet time, and after maxQuiets of them in any case.
const (
	quietTime = 50 * time.Millisecond
	maxQuiets = 40
)

// PushConfig describes a Push. Its listeners are closed by Serve.
type PushConfig struct {
	// Trusted take requests of whoever can reach them: a unix socket.
	Trusted []net.Listener
	// Guarded take requests whose path begins with Token: loopback TCP ports,
	// which on some machines other trials reach too.
	Guarded []net.Listener
	// Token is the first segment of the path of a guarded request. Needed with
	// Guarded.
	Token string
	// Katib take Katib's report_metrics: plain gRPC, for the trial named Trial.
	Katib []net.Listener
	// Trial is the name that report_metrics must give. Needed with Katib.
	Trial string
	// Journal is the path of the file that keeps what was pushed.
	Journal string
	// JournalLimit bounds the journal, in bytes. Default: DefaultJournalLimit.
	JournalLimit int64
	// Artifacts is the directory in which programs find that MLflow's artifacts
	// belong. Default: the directory of temporary files.
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
	Clock Clock
}

// Push takes what programs report over HTTP: its own report (POST /report), the
// status of Kubeflow's Trainer, MLflow's tracking and Katib's report_metrics.
//
// A request is answered with success once its points are in the journal, where
// neither a kill of the collector nor an absent service can lose them. Seq is the
// place in the journal. docs/collectors-push.md says which requests that are sent
// twice count once.
type Push struct {
	cfg     PushConfig
	wanted  map[string]bool // nil means all
	journal *pushJournal
	state   *pushState          // guarded by the journal's lock
	room    *semaphore.Weighted // for bodies
	work    *semaphore.Weighted // for decoding them
	parsers sync.Pool
	others  strangers // names that nobody asked for

	active   atomic.Int64 // requests that are being answered
	served   atomic.Int64 // requests so far
	searched atomic.Int64 // reports that were searched for names

	mu     sync.Mutex
	failed error // of the servers
}

var _ collector.Source = (*Push)(nil)

// pushState is what the journal tells, kept at hand.
type pushState struct {
	keys    *window           // of requests with a key
	points  *window           // of MLflow's points
	trainer map[string]string // newest value of each metric in Trainer's status
	step    int64             // newest step there
	mlflow  *mlflowState
}

// NewPush returns a source named "push" and reads the journal that an earlier
// collector left. Serve must be called to take requests.
func NewPush(cfg PushConfig) (*Push, error) {
	switch {
	case len(cfg.Trusted)+len(cfg.Guarded)+len(cfg.Katib) == 0:
		return nil, errors.New("a push source needs a listener")
	case len(cfg.Guarded) > 0 && cfg.Token == "":
		return nil, errors.New("a push source with guarded listeners needs a token")
	case len(cfg.Katib) > 0 && cfg.Trial == "":
		return nil, errors.New("a push source with a listener for Katib's report_metrics needs the name of the trial")
	}
	cfg.Clock = cfg.Clock.orReal()
	p := &Push{cfg: cfg, failed: cfg.Trouble, room: semaphore.NewWeighted(maxBodies), work: semaphore.NewWeighted(maxWork)}
	if len(cfg.Metrics) > 0 {
		if _, err := parse.NewJSON(cfg.Metrics); err != nil {
			return nil, err
		}
		p.wanted = map[string]bool{}
		for _, m := range cfg.Metrics {
			p.wanted[m] = true
		}
	}
	p.state = &pushState{keys: newWindow(), points: newWindow(), trainer: map[string]string{}, step: parse.NoStep, mlflow: newMLflowState(cfg)}
	journal, err := openJournal(cfg.Journal, cfg.JournalLimit, p.state.apply)
	if err != nil {
		return nil, err
	}
	p.journal = journal
	return p, nil
}

// apply takes note of an entry, new or read from the journal.
func (s *pushState) apply(e entry) {
	if e.Key != (digest{}) {
		s.keys.add(e.Key)
	}
	if e.Step > 0 {
		s.step = max(s.step, e.Step)
	}
	for _, p := range e.Points {
		if e.Run != "" {
			s.points.add(identity(e.Run, p))
		}
		if e.Trainer {
			s.trainer[p.Metric], s.step = p.Value+p.Text, max(s.step, p.Step)
		}
	}
	s.mlflow.apply(e)
}

// Points implements collector.Source. It ends after the drain, once all that
// was taken is read.
func (p *Push) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		enough := false
		found := map[string]bool{}
		p.journal.points(ctx, func(point collector.Point, err error) bool {
			if err == nil && len(found) < len(p.wanted) {
				found[point.Metric] = true
			}
			enough = !yield(point, err)
			return !enough
		})
		if err := p.missing(found); err != nil && !enough && ctx.Err() == nil {
			enough = !yield(collector.Point{}, err)
		}
		if err := p.failure(); err != nil && !enough && ctx.Err() == nil {
			yield(collector.Point{}, err)
		}
	}
}

// missing says which metrics were never pushed; nil when none is missing.
func (p *Push) missing(found map[string]bool) error {
	var missing, there []string
	for _, m := range p.cfg.Metrics {
		switch {
		case slices.Contains(missing, m), slices.Contains(there, m):
		case found[m]:
			there = append(there, m)
		default:
			missing = append(missing, m)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	there = append(there, p.others.list()...)
	text := parse.NotFound(missing, there)
	if len(there) == 0 {
		text = strings.Join(missing, ", ") + " was not found: the program pushed nothing"
	}
	return &MissingError{Metrics: missing, Text: "push: " + text}
}

// Serve takes requests until ctx ends. After the drain it refuses them. An error
// of a listener is yielded by Points.
func (p *Push) Serve(ctx context.Context) {
	trusted := p.routes()
	var servers []*http.Server
	var running sync.WaitGroup
	start := func(listeners []net.Listener, h http.Handler, what string) {
		for _, l := range listeners {
			s := newPushServer(p.counted(h))
			servers = append(servers, s)
			running.Go(func() {
				if err := s.Serve(limited(l, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
					p.fail(fmt.Errorf("%s %s: %w", what, l.Addr(), err))
				}
			})
		}
	}
	start(p.cfg.Trusted, trusted, "push socket")
	start(p.cfg.Guarded, p.guard(trusted), "push address")
	start(p.cfg.Katib, p.katibRoutes(), "address for report_metrics")
	select {
	case <-p.cfg.Drain:
		p.settle(ctx)
		<-ctx.Done()
	case <-ctx.Done():
	}
	p.journal.close()
	for _, s := range servers {
		_ = s.Close() // it is of no use to know
	}
	running.Wait()
}

// settle closes the journal once nothing is asked any more.
func (p *Push) settle(ctx context.Context) {
	for range maxQuiets {
		before := p.served.Load()
		select {
		case <-p.cfg.Clock.After(quietTime):
		case <-ctx.Done():
		}
		if ctx.Err() != nil || p.active.Load() == 0 && p.served.Load() == before {
			break
		}
	}
	p.journal.close()
}

func newPushServer(h http.Handler) *http.Server {
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
func (p *Push) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.active.Add(1)
		defer p.active.Add(-1)
		p.served.Add(1)
		h.ServeHTTP(w, r)
	})
}

func (p *Push) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = errors.Join(p.failed, err)
}

func (p *Push) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// wants says whether the points of a metric are kept.
func (p *Push) wants(metric string) bool {
	wanted := metric != "" && (p.wanted == nil || p.wanted[metric])
	if !wanted {
		p.others.add(metric)
	}
	return wanted
}

// limited is a listener with a bounded number of connections: further ones wait
// in the kernel.
func limited(l net.Listener, n int) net.Listener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, n), done: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
