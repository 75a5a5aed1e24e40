package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
)

// MaxBatch is the most points that a client sends with one call.
const MaxBatch = 4096

const (
	// The first point after a quiet time waits for company this long; then
	// batches leave once every maxLinger.
	minLinger = 100 * time.Millisecond
	maxLinger = time.Second
	// How long one call may take.
	callTimeout = 10 * time.Second
	// Waits between tries: doubled each time, shortened by up to half at random
	// so that the collectors of a node do not come back all at once.
	minRetry = 100 * time.Millisecond
	maxRetry = 10 * time.Second
	// Points between the sources and the sender.
	readAhead = 256
)

// ErrNotDelivered means that the service did not acknowledge everything in the
// time that there was. The summary is what remains.
var ErrNotDelivered = errors.New("not all points were delivered")

// Config describes a Client.
type Config struct {
	// Attempt is what is reported.
	Attempt collector.Attempt
	// Metrics names the wanted metrics, the objective first, for the order of
	// the summary.
	Metrics []string
	// Sources makes the sources, once, given what the service has acknowledged
	// for each source name (nothing, if it could not be asked). They must end
	// after Drain was closed.
	Sources func(acked map[string]int64) ([]collector.Source, error)
	// Service is the report service; see Dial.
	Service vernierv1.ReportServiceClient
	// Drain is closed when no more points will be made: no batch lingers then,
	// and tries follow each other faster.
	Drain <-chan struct{}
	// Abandon is closed when the service is not waited for any longer. Points
	// are still read, for the summary.
	Abandon <-chan struct{}
	// Log gets what goes wrong. Default: nothing is logged.
	Log *slog.Logger
}

// Client reads the points of one attempt and reports them. The origins are the
// queue: while the service is away nothing is read on, and after a restart
// everything is read again and what was acknowledged is passed over. So a client
// holds no more than one batch.
type Client struct {
	cfg   Config
	tally *tally
	notes notes
	acked map[string]int64 // from Hello
	seen  map[string]int64 // largest Seq read plus one
	batch []collector.Point
	retry retry
	// failed is why points were given up. Nil when none were.
	failed error
}

// NewClient returns a client that has done nothing yet.
func NewClient(cfg Config) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{cfg: cfg, tally: newTally(cfg.Metrics), seen: map[string]int64{}, retry: retry{drain: cfg.Drain}}
}

// Run reports until every source has ended and the service has acknowledged all
// points and the end, then returns the summary. The error wraps ErrNotDelivered
// when the service could not be reached until Abandon was closed; the summary is
// complete even so. It is ctx's error when ctx ended; the summary then covers
// what was read so far.
func (c *Client) Run(ctx context.Context) (Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sending, stop := until(ctx, c.cfg.Abandon)
	defer stop()

	c.acked = c.hello(sending)
	sources, err := c.cfg.Sources(c.acked)
	if err != nil {
		return c.summary(false), fmt.Errorf("make the sources: %w", err)
	}
	err = c.forward(ctx, sending, sources)
	return c.summary(err == nil), err
}

// until returns a context that also ends when stop closes.
func until(ctx context.Context, stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (c *Client) summary(final bool) Summary {
	return Summary{Attempt: c.cfg.Attempt, Final: final, Metrics: c.tally.list(), Note: c.notes.String()}
}

// hello asks until there is an answer. It returns nil when there is none.
func (c *Client) hello(ctx context.Context) map[string]int64 {
	var acked map[string]int64
	err := c.call(ctx, func(ctx context.Context) error {
		answer, err := c.cfg.Service.Hello(ctx, &vernierv1.HelloRequest{Attempt: EncodeAttempt(c.cfg.Attempt)})
		acked = answer.GetAcked()
		return err
	})
	if err != nil {
		c.cfg.Log.Error("the report service was not reached", "attempt", c.cfg.Attempt.ID, "error", err)
	}
	return acked
}

// item is what a source yields.
type item struct {
	point collector.Point
	err   error
}

// forward sends what the sources yield until all of them have ended.
func (c *Client) forward(ctx, sending context.Context, sources []collector.Source) error {
	items := make(chan item, readAhead)
	var pumps sync.WaitGroup
	for _, s := range sources {
		pumps.Go(func() { c.pump(ctx, s, items) })
	}
	go func() {
		pumps.Wait()
		close(items)
	}()
	due := time.NewTimer(time.Hour)
	due.Stop()
	var last time.Time // of the last call
	flush := func(final bool) {
		due.Stop()
		c.flush(sending, final)
		last = time.Now()
	}
	for {
		select {
		case it, open := <-items:
			if !open {
				flush(true)
				return c.outcome(ctx)
			}
			if c.take(it) && len(c.batch) == 1 {
				due.Reset(max(minLinger, maxLinger-time.Since(last)))
			}
			if len(c.batch) >= MaxBatch {
				flush(false)
			}
		case <-due.C:
			flush(false)
		}
	}
}

// pump reads one source. A source that ends before it was told to drain is
// read again from its beginning after a while; what was seen is passed over.
func (c *Client) pump(ctx context.Context, s collector.Source, items chan<- item) {
	again := retry{drain: c.cfg.Drain}
	for {
		for p, err := range s.Points(ctx) {
			select {
			case items <- item{p, err}:
			case <-ctx.Done():
				return
			}
		}
		if isClosed(c.cfg.Drain) || !again.wait(ctx) {
			return
		}
	}
}

// take counts what a source yielded and reports whether it must be sent.
func (c *Client) take(it item) bool {
	if it.err != nil {
		if c.notes.add(it.err.Error()) {
			c.cfg.Log.Warn("a source could not be read", "attempt", c.cfg.Attempt.ID, "error", it.err)
		}
		return false
	}
	p := fit(it.point)
	if p.Seq < c.seen[p.Source] {
		return false
	}
	c.seen[p.Source] = p.Seq + 1
	c.tally.add(p)
	if p.Seq < c.acked[p.Source] {
		return false
	}
	c.batch = append(c.batch, p)
	return true
}

// flush sends the batch and, if asked, the end. The batch is empty afterwards:
// delivered, refused, or given up, as the notes say.
func (c *Client) flush(ctx context.Context, final bool) {
	if len(c.batch) == 0 && !final {
		return
	}
	err := c.report(ctx, final)
	if refused(err) && len(c.batch) > 0 {
		// Sent again it would be refused again, and hold up all that follows.
		c.notes.refuse(len(c.batch), err)
		c.cfg.Log.Error("the report service refused points", "points", len(c.batch), "error", err)
		c.batch = c.batch[:0]
		err = nil
		if final {
			err = c.report(ctx, true)
		}
	}
	if err != nil {
		c.notes.undelivered += len(c.batch)
		c.failed = err
	}
	c.batch = c.batch[:0]
}

func (c *Client) report(ctx context.Context, final bool) error {
	request := &vernierv1.ReportRequest{
		Attempt: EncodeAttempt(c.cfg.Attempt),
		Points:  EncodePoints(c.batch),
		// After a loss the attempt is never final: the summary stands in.
		Final: final && c.failed == nil,
	}
	if request.Final {
		request.Note = c.notes.String()
	}
	return c.call(ctx, func(ctx context.Context) error {
		_, err := c.cfg.Service.Report(ctx, request)
		return err
	})
}

// call repeats do until it succeeds, until it is refused for what it says, or
// until ctx ends. What will hardly mend (a token that is not accepted) is not
// waited for once the sources drain.
func (c *Client) call(ctx context.Context, do func(context.Context) error) error {
	for tries := 0; ; tries++ {
		one, cancel := context.WithTimeout(ctx, callTimeout)
		err := do(one)
		cancel()
		if err == nil {
			c.retry.pause = 0
			return nil
		}
		if refused(err) || hopeless(err) && isClosed(c.cfg.Drain) {
			return err
		}
		if tries == 0 {
			c.cfg.Log.Warn("the report service does not answer; trying again", "error", err)
		}
		if !c.retry.wait(ctx) {
			return err
		}
	}
}

func refused(err error) bool {
	code := connect.CodeOf(err)
	return err != nil && (code == connect.CodeInvalidArgument || code == connect.CodeResourceExhausted)
}

func hopeless(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnauthenticated, connect.CodePermissionDenied, connect.CodeUnimplemented, connect.CodeNotFound:
		return true
	}
	return false
}

func (c *Client) outcome(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.failed != nil {
		return fmt.Errorf("%w: %d points: %w", ErrNotDelivered, c.notes.undelivered, c.failed)
	}
	return nil
}
