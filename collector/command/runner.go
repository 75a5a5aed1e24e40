package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/source"
)

// How often the collector looks for a start of the program. A wrapped program does
// not wait for the collector; one that is not wrapped waits at each restart.
const (
	pollFirst = 20 * time.Millisecond
	pollNext  = 250 * time.Millisecond
	startPoll = 50 * time.Millisecond
)

// runner reports the attempts of one pod.
type runner struct {
	cfg     runConfig
	log     *slog.Logger
	service vernierv1.ReportServiceClient
	kind    kind
	// draining ends with the first SIGTERM.
	draining context.Context //nolint:containedctx // the life of the program, not of a call
	abandon  <-chan struct{} // closed when the service is given up
	// journalEnd is where the journal of the kind ends; nil where it has none.
	journalEnd func() int64
	current    *attempt // the one that goes on

	mu       sync.Mutex
	errs     []error
	attempts []*attempt // that are, or were, reported
	starts   []further  // after the first, where a journal is split by them
	pending  sync.WaitGroup
}

// attempt is one start of the program, or what of it counts as one.
type attempt struct {
	collector.Attempt
	n   int
	dir string // that it shares with the program
	// over ends when the program has: nothing is written any more.
	over context.Context //nolint:containedctx // the life of the attempt, not of a call
	end  context.CancelFunc

	until atomic.Pointer[source.Before] // what the next start found in the files
	read  chan struct{}                 // closed when the files were read to their end

	// Of one that was reported (client is nil then); guarded by runner.mu.
	client  *report.Client
	stats   report.Stats
	summary contract.Summary
	freed   bool
}

func newRunner(draining context.Context, cfg runConfig, log *slog.Logger, abandon <-chan struct{}) (*runner, error) {
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
	return &runner{cfg: cfg, log: log, service: service, kind: kind, draining: draining, abandon: abandon}, nil
}

// run reports until SIGTERM, even when all is said before: a native sidecar that
// ends is started again.
func (r *runner) run(ctx context.Context) error {
	if !r.kind.wraps {
		// Before it is ready: a client that waits for that may push at once.
		if err := r.first(ctx); err != nil {
			return err // at once, and not ready: the kubelet tries again, and shows it
		}
	}
	defer r.serveMetrics(ctx)()
	ready, err := sayReady(r.cfg.dir)
	if err != nil {
		return err
	}
	defer ready.Close()
	r.watch(ctx)
	r.pending.Wait()
	return errors.Join(r.errs...)
}

// watch looks for starts of the program until SIGTERM, and once more then.
func (r *runner) watch(ctx context.Context) {
	for n := 0; ; {
		stopping := r.draining.Err() != nil
		var s start
		err := readJSON(filepath.Join(attemptDir(r.cfg.dir, n), startName), &s)
		switch {
		case err == nil:
			if err := r.started(ctx, n, s); err != nil {
				r.log.Error("a start of the program is not measured as one of its own", "error", err)
				r.fail(err)
			}
			n++
			continue
		case !errors.Is(err, fs.ErrNotExist):
			r.fail(fmt.Errorf("read attempt %d: %w", n, err))
			<-r.draining.Done()
			return
		case stopping:
			return
		}
		pause := startPoll
		if r.kind.wraps {
			if pause = pollNext; n == 0 {
				pause = pollFirst
			}
		}
		select {
		case <-r.draining.Done():
		case <-time.After(pause):
		}
	}
}

// started takes in a start that was seen. Where the program is wrapped it begins an
// attempt, which is over when its exec has ended, when the next has begun, or at
// SIGTERM.
func (r *runner) started(ctx context.Context, n int, s start) error {
	if !r.kind.wraps {
		return r.line(ctx, n, s)
	}
	if reported(r.cfg.dir, n) {
		return nil
	}
	if r.current != nil {
		r.current.end()
	}
	if err := r.begin(ctx, n, s.Started, nil); err != nil {
		return err
	}
	go func(a *attempt) {
		if err := awaitEnd(a.dir); err != nil {
			r.log.Warn("the end of the program cannot be seen before SIGTERM", "error", err)
			return
		}
		a.end()
	}(r.current)
	return nil
}

// begin begins an attempt. until is what the one after it found, nil when it goes on.
func (r *runner) begin(ctx context.Context, n int, began time.Time, until *source.Before) error {
	a := &attempt{Attempt: r.identity(n, began), n: n, dir: attemptDir(r.cfg.dir, n), read: make(chan struct{})}
	a.over, a.end = context.WithCancel(r.draining)
	if until != nil {
		a.until.Store(until)
		a.end()
	}
	open, err := r.kind.prepare(ctx, r, a)
	if err != nil {
		return fmt.Errorf("attempt %s: %w", a.ID, err)
	}
	r.current = a
	r.report(ctx, a, open)
	return nil
}

func (r *runner) identity(n int, began time.Time) collector.Attempt {
	return collector.Attempt{ID: r.cfg.podUID + "/" + strconv.Itoa(n), Started: began}
}

// report reports what the sources of an attempt yield, in the background.
func (r *runner) report(ctx context.Context, a *attempt, open opener) {
	client := report.NewClient(report.Config{
		Attempt: a.Attempt, Metrics: r.cfg.metrics, Sources: open, Service: r.service,
		Drain: a.over.Done(), Abandon: r.abandon, Rate: r.cfg.rate, Log: r.log,
	})
	r.mu.Lock()
	a.client = client
	r.attempts = append(r.attempts, a)
	r.free()
	r.mu.Unlock()
	r.pending.Go(func() {
		summary, err := client.Run(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		a.client, a.stats, a.summary = nil, client.Stats(), summary
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("attempt %s: %w", a.ID, err))
		}
		if err := r.cfg.leave(summarize(r.attempts)); err != nil {
			// All the worse when it was needed; run's own error says so.
			r.log.Error("the summary was not written", "error", err)
		}
		r.free()
	})
}

// summarize is the termination message of a pod: the summary of the newest attempt
// that has ended. It is final if all attempts are, and else says what the earlier
// ones lack.
func summarize(attempts []*attempt) contract.Summary {
	var newest *attempt
	final, cut, lost := true, 0, int64(0)
	for _, a := range attempts {
		if a.client == nil && (newest == nil || a.n > newest.n) {
			newest = a
		}
	}
	for _, a := range attempts {
		final = final && a.client == nil && a.summary.Final
		if a.client == nil && !a.summary.Final && a != newest {
			cut, lost = cut+1, lost+a.stats.Undelivered
		}
	}
	s := newest.summary
	s.Final = final
	if cut > 0 {
		note := fmt.Sprintf("earlier attempts that were not reported to their end: %d; %d of their points were not delivered", cut, lost)
		s.Note = strings.TrimSuffix(note+"; "+s.Note, "; ")
	}
	return s
}

// reportedName is a file of an attempt that is stored to its end, and whose output is
// gone: a sidecar that starts again passes it over.
const reportedName = "reported"

// reported says whether an attempt is stored to its end and its output gone.
func reported(dir string, n int) bool {
	_, err := os.Stat(filepath.Join(attemptDir(dir, n), reportedName))
	return err == nil
}

// free removes the kept output of attempts that are stored to their end, but of the
// newest, of which a sidecar that starts again makes its summary.
func (r *runner) free() {
	if !r.kind.wraps {
		return
	}
	newest := r.attempts[len(r.attempts)-1]
	for _, a := range r.attempts {
		if a.freed || a == newest || !a.summary.Final {
			continue
		}
		a.freed = true
		// The mark first: without its output the attempt must not be read again.
		err := os.WriteFile(filepath.Join(a.dir, reportedName), nil, 0o644)
		if err == nil {
			err = os.RemoveAll(filepath.Join(a.dir, streamName))
		}
		if err != nil {
			r.log.Warn("the output of an earlier attempt is not removed", "error", err)
		}
	}
}

// statistics sums up all attempts. What is of one moment is that of the newest.
func (r *runner) statistics() (sum report.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.attempts {
		if a.client != nil {
			sum = sum.Add(a.client.Stats())
		} else {
			sum = sum.Add(a.stats)
		}
	}
	return sum
}

func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}
