// Package source holds the places that points come from: a file of lines that a
// program writes (File) or a table (CSV), a directory of tables (Tables), of W&B's
// offline runs (WandbDir) or of TensorBoard event files (EventDir), the output of a
// program that runs under `collector exec` (Stream, written by StreamWriter), a
// pipe (Reader), an endpoint that is scraped (Scrape), and what programs push
// (Push).
//
// Sources of files poll. They use no inotify: its instances are few per user and
// shared by all pods of a node, and it is silent on network file systems. One that
// sees nothing new waits 50 ms, then twice as long each time, up to one second.
package source

import (
	"context"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// Clock is the time that a source sees. The zero value is the machine's clock.
type Clock struct {
	// Now returns the present time. Default: time.Now.
	Now func() time.Time
	// After is sent the time once, after a duration. Default: time.After.
	After func(time.Duration) <-chan time.Time
}

func (c Clock) orReal() Clock {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.After == nil {
		c.After = time.After
	}
	return c
}

const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// pace spaces the polls of one source.
type pace struct {
	clock Clock
	drain <-chan struct{}
	pause time.Duration
}

// wait returns when it is time to look again: after a pause, or at once when
// drain closes. Its error is ctx's.
func (p *pace) wait(ctx context.Context, sawData bool) error {
	p.pause = min(p.pause*2, maxPause)
	if sawData || p.pause == 0 {
		p.pause = minPause
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.drain:
	case <-p.clock.After(p.pause):
	}
	return ctx.Err()
}

// poller is a source that looks for news.
type poller interface {
	// poll yields all there is, unless ctx ends. sawData says whether there was
	// anything; ok is false when the consumer has had enough.
	poll(ctx context.Context) (sawData, ok bool)
	// finish yields what is left after the last poll.
	finish() (ok bool)
}

// following is what follow needs.
type following struct {
	clock  Clock
	drain  <-chan struct{}
	poller poller
	yield  func(collector.Point, error) bool
}

// follow polls until the source is drained and empty, or ctx ends.
func follow(ctx context.Context, f following) {
	pace := pace{clock: f.clock, drain: f.drain}
	for {
		// Asked before the poll, so that the last one sees all that was
		// written before the drain.
		last := closed(f.drain)
		sawData, ok := f.poller.poll(ctx)
		switch {
		case !ok:
			return
		case ctx.Err() != nil:
			f.yield(collector.Point{}, ctx.Err())
			return
		case last:
			f.poller.finish()
			return
		}
		if err := pace.wait(ctx, sawData); err != nil {
			f.yield(collector.Point{}, err)
			return
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
