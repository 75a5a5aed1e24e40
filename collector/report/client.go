// Package report is how points travel from a trial's pod to the report service:
// the token that a trial reports with, the batches on the wire, and the client that
// the collector runs.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
)

// MaxBatch is the most points that a client sends with one call. A batch that is
// sent and one that is filled are most of what a collector keeps in memory.
const MaxBatch = 1024

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
)

// ErrNotDelivered means that the service did not acknowledge everything in the
// time that there was, or has no room for it. The summary is what remains.
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
	// Rate caps the points of each metric, in points a second since the attempt
	// began; a metric may be a hundred seconds' worth ahead of that. The curve of
	// one that is further ahead is thinned: each stretch keeps its first, least,
	// greatest and last point, so that the trial's result stays the same. 0 means
	// no cap.
	Rate int64
	// Log gets what goes wrong. Default: nothing is logged.
	Log *slog.Logger
}

// Client reads the points of one attempt and reports them. The origins are the
// queue: while the service is away no more is read than one batch, and after a
// restart everything is read again and what was acknowledged is passed over. So
// a client holds no more than two batches.
type Client struct {
	cfg    Config
	points *batcher
	retry  retry
	// failed is why points were given up. Nil when none were.
	failed  error
	full    bool   // nothing more is stored of the trial
	trouble error  // of the last call, unless it was broken off or went well
	noted   string // of metrics that were not found yet, as the service was told last
}

// NewClient returns a client that has done nothing yet.
func NewClient(cfg Config) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{cfg: cfg, points: newBatcher(cfg), retry: retry{drain: cfg.Drain}}
}

// Run reports until every source has ended and the service has acknowledged all
// points and the end, then returns the summary. The error wraps ErrNotDelivered
// when the service could not be reached until Abandon was closed, or stores no more
// of the trial; the summary is complete even so. It is ctx's error when ctx ended;
// the summary then covers what was read so far.
func (c *Client) Run(ctx context.Context) (contract.Summary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sending, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-c.cfg.Abandon:
			stop()
		case <-sending.Done():
		}
	}()

	acked := c.hello(sending)
	c.points.acknowledged(acked)
	sources, err := c.cfg.Sources(acked)
	if err != nil {
		return c.points.summary(c.cfg.Attempt, false), fmt.Errorf("make the sources: %w", err)
	}
	err = c.forward(ctx, sending, sources)
	return c.points.summary(c.cfg.Attempt, err == nil), err
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

// forward sends what the sources yield until all of them have ended.
func (c *Client) forward(ctx, sending context.Context, sources []collector.Source) error {
	// What waits for the batch to be taken looks at ctx when it ends.
	defer context.AfterFunc(ctx, func() {
		c.points.mu.Lock()
		defer c.points.mu.Unlock()
		c.points.taken.Broadcast()
	})()
	var pumps sync.WaitGroup
	for _, s := range sources {
		pumps.Go(func() { c.pump(ctx, s) })
	}
	ended := make(chan struct{})
	go func() {
		pumps.Wait()
		close(ended)
	}()
	linger := minLinger
	for {
		select {
		case <-c.points.begun:
		case <-ended:
			c.flush(sending, true)
			return c.outcome(ctx)
		}
		select {
		case <-time.After(linger):
		case <-c.points.ready:
		case <-ended:
			continue
		}
		sent := time.Now()
		c.flush(sending, false)
		linger = max(minLinger, maxLinger-time.Since(sent))
	}
}

// pump reads one source. A source that ends before it was told to drain is
// read again from its beginning after a while; what was seen is passed over.
func (c *Client) pump(ctx context.Context, s collector.Source) {
	again := retry{drain: c.cfg.Drain}
	for {
		for p, err := range s.Points(ctx) {
			if err != nil {
				if c.points.trouble(err) {
					c.cfg.Log.Warn("a source could not be read", "attempt", c.cfg.Attempt.ID, "error", err)
				}
				continue
			}
			if !c.points.take(ctx, p) {
				return
			}
		}
		if isClosed(c.cfg.Drain) || !again.wait(ctx) {
			return
		}
	}
}

// flush sends the batch and, if asked, the end. The batch is then delivered,
// refused, or given up, as the notes say.
func (c *Client) flush(ctx context.Context, final bool) {
	batch := c.points.collect()
	defer c.points.landed()
	if len(batch) == 0 && !final && (c.failed != nil || c.points.notFoundYet() == c.noted) {
		return
	}
	err := c.failed
	if err == nil || !c.full && ctx.Err() == nil {
		err = c.report(ctx, batch, final)
	}
	if refused(err) && !isFull(err) && len(batch) > 0 {
		// Sent again it would be refused again, and hold up all that follows.
		c.points.account(func(s *Stats, n *notes) {
			s.Refused += int64(len(batch))
			n.refused.add(len(batch), err)
		})
		c.cfg.Log.Error("the report service refused points", "points", len(batch), "error", err)
		batch, err = nil, nil
		if final {
			err = c.report(ctx, nil, true)
		}
	}
	if isFull(err) && !c.full {
		c.full = true
		c.cfg.Log.Error("the report service takes no more points of this trial", "attempt", c.cfg.Attempt.ID, "error", err)
	}
	if err != nil {
		c.failed = err
		c.points.account(func(s *Stats, n *notes) {
			s.Undelivered += int64(len(batch))
			n.undelivered.add(len(batch), cmp.Or(c.trouble, err))
		})
	}
}

func (c *Client) report(ctx context.Context, batch []collector.Point, final bool) error {
	request := &vernierv1.ReportRequest{
		Attempt: EncodeAttempt(c.cfg.Attempt),
		Points:  EncodePoints(batch),
		// After a loss the attempt is never final: the summary stands in.
		Final: final && c.failed == nil,
	}
	note := c.points.notFoundYet()
	switch {
	case request.Final:
		request.Note = proto.String(c.points.summary(c.cfg.Attempt, true).Note)
	case note != c.noted:
		request.Note = &note
	}
	return c.call(ctx, func(ctx context.Context) error {
		answer, err := c.cfg.Service.Report(ctx, request)
		if err == nil {
			c.noted = note
			c.points.answered(len(batch), proto.Size(request), answer.GetAcked())
		}
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
			c.retry.pause, c.trouble = 0, nil
			return nil
		}
		if ctx.Err() == nil {
			c.trouble = err
		}
		c.points.account(func(s *Stats, _ *notes) { s.Retries++ })
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

// isFull says that the trial has as many points as are stored of one.
func isFull(err error) bool {
	var refusal *connect.Error
	return errors.As(err, &refusal) && refusal.Code() == connect.CodeResourceExhausted && refusal.Meta().Get(FullHeader) != ""
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
		return fmt.Errorf("%w: %d points: %w", ErrNotDelivered, c.Stats().Undelivered, c.failed)
	}
	return nil
}

// retry spaces tries.
type retry struct {
	drain <-chan struct{}
	pause time.Duration
}

// wait returns false when ctx ended. The first wait during which drain closes
// ends at once, and the pauses begin anew.
func (r *retry) wait(ctx context.Context) bool {
	r.pause = min(max(2*r.pause, minRetry), maxRetry)
	select {
	case <-r.drain:
		r.drain, r.pause = nil, 0
	case <-time.After(r.pause/2 + rand.N(r.pause/2)):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
