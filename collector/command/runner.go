package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
)

const (
	// How often a start of the program is looked for: before the first, and
	// after it.
	pollFirst = 20 * time.Millisecond
	pollNext  = 250 * time.Millisecond
)

// runner reports the attempts of one pod.
type runner struct {
	cfg     runConfig
	log     *slog.Logger
	service vernierv1.ReportServiceClient
	kind    kind
	starts  starts
	// journalEnd is where the journal of the kind ends; nil where it has none.
	journalEnd func() int64
	drain      chan struct{} // closed by the first SIGTERM
	abandon    chan struct{} // closed when the service is given up

	fallback *fallback // the summary on disk
	outputs  outputs   // of the program (StdOut)

	mu      sync.Mutex
	errs    []error
	pending sync.WaitGroup
	// attempts are those that are reported, the newest last, and ended sums up
	// those before them.
	attempts []*reporting
	ended    report.Stats
}

func newRunner(cfg runConfig, log *slog.Logger) (*runner, error) {
	service, err := report.Dial(cfg.service)
	if err != nil {
		return nil, err
	}
	kind, err := kindNamed(cfg.kind)
	if err != nil {
		return nil, err
	}
	if err := kind.check(cfg); err != nil {
		return nil, err
	}
	last := &fallback{put: func(s contract.Summary) error { return writeSummary(cfg.terminationLog, s) }}
	r := &runner{cfg: cfg, log: log, service: service, kind: kind, fallback: last,
		drain: make(chan struct{}), abandon: make(chan struct{})}
	r.starts.r = r
	return r, nil
}

// run reports until SIGTERM, even when all is said before: a native sidecar that
// ends is started again.
func (r *runner) run(ctx context.Context) error {
	if !r.kind.wraps {
		// Before it is ready: whoever waits for that may push at once.
		if err := r.starts.first(ctx); err != nil {
			return err // at once, and not ready: the kubelet tries again, and shows it
		}
	}
	defer r.serveMetrics(ctx)()
	if err := sayReady(r.cfg.dir); err != nil {
		return err
	}
	if r.kind.wraps {
		r.watch(ctx)
	} else {
		r.starts.watch(ctx)
	}
	r.pending.Wait()
	return errors.Join(r.errs...)
}

// over says, once, that an attempt has ended.
type over struct {
	once sync.Once
	c    chan struct{}
}

func (o *over) say() { o.once.Do(func() { close(o.c) }) }

// watch begins each attempt that "collector exec" starts. An attempt is over
// when its exec has ended, when the next has begun, or at SIGTERM.
func (r *runner) watch(ctx context.Context) {
	pause := pollFirst
	last := &over{c: make(chan struct{})}
	for n := 0; ; {
		stopping := isClosed(r.drain)
		if reported(r.cfg.dir, n) {
			n++
			continue
		}
		dir := attemptDir(r.cfg.dir, n)
		var s start
		err := readJSON(filepath.Join(dir, startName), &s)
		if err == nil {
			last.say()
			last = &over{c: make(chan struct{})}
			go r.awaitEnd(dir, last)
			if err := r.outputs.begin(r.cfg.dir, n); err != nil {
				r.log.Warn("the output of an earlier attempt is not removed", "error", err)
			}
			if err := r.begin(ctx, n, collector.Attempt{ID: r.cfg.podUID + "/" + strconv.Itoa(n), Started: s.Started}, last.c); err != nil {
				r.log.Error("an attempt is not measured", "error", err)
				r.fail(err)
			}
			n, pause = n+1, pollNext
			continue
		}
		if !errors.Is(err, os.ErrNotExist) {
			r.fail(fmt.Errorf("read attempt %d: %w", n, err))
			<-r.drain
			last.say()
			return
		}
		if stopping {
			last.say()
			return
		}
		select {
		case <-r.drain:
		case <-time.After(pause):
		}
	}
}

// awaitEnd says that an attempt is over when its exec has ended. Where files
// cannot be locked, SIGTERM says so later.
func (r *runner) awaitEnd(dir string, o *over) {
	if err := awaitEnd(dir); err != nil {
		r.log.Warn("the end of the program cannot be seen before SIGTERM", "error", err)
		return
	}
	o.say()
}

// begin reports one attempt in the background.
func (r *runner) begin(ctx context.Context, n int, attempt collector.Attempt, drain <-chan struct{}) error {
	job := job{cfg: r.cfg, n: n, dir: attemptDir(r.cfg.dir, n), drain: drain, next: r.follow(ctx, attempt, drain),
		split: r.starts.split, journal: func(end func() int64) { r.journalEnd = end }}
	open, err := r.kind.prepare(ctx, job)
	if err != nil {
		return fmt.Errorf("attempt %s: %w", attempt.ID, err)
	}
	r.report(ctx, n, attempt, drain, open)
	return nil
}

// report reports what the sources of an attempt yield, in the background.
func (r *runner) report(ctx context.Context, n int, attempt collector.Attempt, drain <-chan struct{}, open opener) {
	client := report.NewClient(report.Config{
		Attempt: attempt,
		Metrics: r.cfg.metrics,
		Sources: open,
		Service: r.service,
		Drain:   drain,
		Abandon: r.abandon,
		Rate:    r.cfg.rate,
		Log:     r.log,
	})
	one := r.started(client)
	r.pending.Go(func() {
		summary, err := client.Run(ctx)
		r.stopped(one)
		if err != nil {
			r.fail(fmt.Errorf("attempt %s: %w", attempt.ID, err))
		}
		if err := r.fallback.end(ending{n, summary, client.Stats().Undelivered}); err != nil {
			// All the worse when it was needed; run's own error says so.
			r.log.Error("the summary was not written", "error", err)
		}
		if !r.kind.wraps || !summary.Final {
			return
		}
		if err := r.outputs.end(r.cfg.dir, n); err != nil {
			r.log.Warn("the output of an attempt is not removed", "error", err)
		}
	})
}

// reporting is an attempt that is, or was, reported.
type reporting struct {
	client *report.Client
	over   bool
}

// started takes in a new attempt. Of those that are over, only sums are kept.
func (r *runner) started(c *report.Client) *reporting {
	r.fallback.begin()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts = slices.DeleteFunc(r.attempts, func(a *reporting) bool {
		if a.over {
			r.ended = r.ended.Add(a.client.Stats())
			r.ended.Sources = nil
		}
		return a.over
	})
	one := &reporting{client: c}
	r.attempts = append(r.attempts, one)
	return one
}

func (r *runner) stopped(one *reporting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.over = true
}

// stats sums up all attempts. What is of one moment is that of the newest.
func (r *runner) stats() report.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := r.ended
	for _, a := range r.attempts {
		sum = sum.Add(a.client.Stats())
	}
	return sum
}

func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
