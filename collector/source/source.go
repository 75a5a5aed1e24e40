// Package source is what the sources of points share: how they poll, how they
// open files and find them in directories, what they remember between two starts
// of the collector, and how they say what they did not find. The sources
// themselves are the packages below it, one for each thing that is followed:
// file, events, wandb, push and scrape.
//
// Sources of files poll. They use no inotify: its instances are few per user and
// shared by all pods of a node, and it is silent on network file systems. A source
// that sees nothing new waits 50 ms, then twice as long each time, up to one
// second.
package source

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// Clock is the time that a source sees. The zero value is the machine's clock.
type Clock struct {
	// Now returns the present time. Default: time.Now.
	Now func() time.Time
	// After is sent the time once, after a duration. Default: time.After.
	After func(time.Duration) <-chan time.Time

	stamp func() time.Time
}

// OrReal fills in the machine's clock.
func (c Clock) OrReal() Clock {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.After == nil {
		c.After = time.After
	}
	if c.stamp == nil {
		c.stamp = forward(c.Now)
	}
	return c
}

// Stamp returns the time for a point that states none. It never goes back, where Now
// does because the machine's clock was set: points without a step are in order of time,
// and the latest value must be the last one. Only for a clock that OrReal returned.
func (c Clock) Stamp() time.Time { return c.stamp() }

func forward(now func() time.Time) func() time.Time {
	var mu sync.Mutex // sources of several files read side by side
	var last time.Time
	return func() time.Time {
		at := now().Round(0) // by the wall: a point's time is data
		mu.Lock()
		defer mu.Unlock()
		if at.After(last) {
			last = at
		}
		return last
	}
}

const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second
)

// Yield takes a point, or an error about one. It returns false when the consumer
// has had enough.
type Yield func(collector.Point, error) bool

// Poller is a source that looks for new data from time to time.
type Poller interface {
	// Poll yields all there is, unless ctx ends. sawData says whether there was
	// anything; ok is false when the consumer has had enough.
	Poll(ctx context.Context) (sawData, ok bool)
	// Finish yields what is left after the last poll, unless ctx ends.
	Finish(ctx context.Context) (ok bool)
	// Close lets go of what it holds, at the end of the reading.
	Close()
}

// Polled is a source that polls files. Each reading begins anew.
type Polled struct {
	// Name begins its errors.
	Name string
	// Before is what is passed over; nil: nothing.
	Before *Before
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time.
	Clock Clock
	// Begin returns what is polled, or nil when the consumer has had enough.
	Begin func(said *Troubles) Poller
}

var _ collector.Source = (*Polled)(nil)

// Points implements collector.Source.
func (s *Polled) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		said := &Troubles{Prefix: s.Name, Yield: yield}
		if note := s.Before.Note(); note != nil && !said.Tell(note) {
			return
		}
		if p := s.Begin(said); p != nil {
			defer p.Close()
			Follow(ctx, s.Clock, s.Drain, p, yield)
		}
	}
}

// Follow polls until drain is closed and everything has been read, or until ctx
// ends, whose error is then yielded.
func Follow(ctx context.Context, clock Clock, drain <-chan struct{}, p Poller, yield Yield) {
	for pause := minPause; ; {
		// Asked before the poll, so that the last one sees all that was
		// written before the drain.
		last := Closed(drain)
		sawData, ok := p.Poll(ctx)
		switch {
		case !ok:
			return
		case last && ctx.Err() == nil:
			if p.Finish(ctx) && ctx.Err() != nil {
				yield(collector.Point{}, ctx.Err())
			}
			return
		case sawData:
			pause = minPause
		}
		select {
		case <-ctx.Done():
		case <-drain:
		case <-clock.After(pause):
		}
		if ctx.Err() != nil {
			yield(collector.Point{}, ctx.Err())
			return
		}
		pause = min(pause*2, maxPause)
	}
}

// Closed reports whether a channel is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
