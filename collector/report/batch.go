package report

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
)

// batcher is where the sources put points and the sender takes them. It holds one
// batch: while that one is full and the one before it is being sent, the sources
// wait, and their offsets stay where they are.
type batcher struct {
	rate  int64     // points a second of a metric; 0: no cap
	start time.Time // of the attempt
	order []string  // metrics in the order of the summary

	mu      sync.Mutex
	taken   sync.Cond     // the batch was taken
	wake    chan struct{} // has an element when the sender should look
	timer   *time.Timer   // ends the linger of a batch
	expired bool          // it has

	sources map[string]*sourceState // by the name that the source gives
	metrics map[string]*metricState
	others  metricState // the metrics beyond maxMetrics

	allowed int64 // points of a metric so far, by the cap
	batch   []collector.Point
	spare   []collector.Point // the batch before, for its memory
	thinned map[windowKey]*window
	held    int       // in thinned
	opened  time.Time // when the batch got its first point
	sent    time.Time // when the last one was taken

	notes notes
	stats Stats
}

type sourceState struct {
	name   string
	known  int64 // stored before this collector began, by Hello
	seen   int64 // largest Seq read plus one
	stored int64 // largest Seq acknowledged plus one
}

type metricState struct {
	name   string // empty for the others
	all    collector.Aggregator
	kept   int64 // in batches that were taken
	held   int64 // in batch
	capped bool
}

type windowKey struct{ source, metric string }

func newBatcher(cfg Config) *batcher {
	b := &batcher{
		rate: cfg.Rate, start: cfg.Attempt.Started, order: slices.Clone(cfg.Metrics), wake: make(chan struct{}, 1),
		sources: map[string]*sourceState{}, metrics: map[string]*metricState{}, thinned: map[windowKey]*window{},
	}
	b.taken.L = &b.mu
	b.timer = time.AfterFunc(time.Hour, b.expire)
	b.timer.Stop()
	if now := time.Now(); b.start.IsZero() || b.start.After(now) {
		b.start = now
	}
	b.notes.rate = cfg.Rate
	b.allow()
	return b
}

// acknowledged takes in what Hello said.
func (b *batcher) acknowledged(acked map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, next := range acked {
		b.sources[name] = &sourceState{name: name, known: next, stored: next}
	}
}

// allow works out how many points of each metric the cap allows by now.
func (b *batcher) allow() {
	elapsed := max(time.Since(b.start), 0)
	b.allowed = b.rate * (burstSeconds + int64(elapsed/time.Second))
}

func (b *batcher) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expired = true
	b.call()
}

// call makes the sender look.
func (b *batcher) call() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *batcher) size() int { return len(b.batch) + b.held }

// full reports whether the sources must wait until the batch was taken. A
// thinned batch never fills; it must not span the time for which the service is
// away.
func (b *batcher) full() bool { return b.size() >= MaxBatch || b.expired && len(b.thinned) > 0 }

// trouble notes what a source could not read. It reports whether it was told for
// the first time.
func (b *batcher) trouble(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Troubles++
	var gap interface{ Dropped() int64 }
	if errors.As(err, &gap) {
		b.stats.DroppedBytes += gap.Dropped()
	}
	var missing interface{ Missing() []string }
	if errors.As(err, &missing) {
		return b.notes.miss(err.Error())
	}
	return b.notes.add(err.Error())
}

// take takes in a point. It waits while there is no room, and returns false when
// ctx ended meanwhile.
func (b *batcher) take(ctx context.Context, p collector.Point) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, m := b.source(p.Source), b.metric(p.Metric)
	if p.Seq < s.seen {
		return true
	}
	s.seen = p.Seq + 1
	b.stats.Read++
	p.Source = s.name
	if p.Text != "" {
		p.Text = clip(p.Text, MaxText)
	}
	if m == &b.others {
		p.Metric = clip(p.Metric, MaxName)
	} else {
		p.Metric = m.name
		m.all.Add(collector.Attempt{}, p)
	}
	if p.Seq < s.known {
		m.kept = min(m.kept+1, max(b.allowed, m.kept))
		return true
	}
	for b.full() {
		b.call()
		b.taken.Wait()
		if ctx.Err() != nil {
			return false
		}
	}
	b.put(p, m)
	return true
}

func (b *batcher) source(given string) *sourceState {
	s := b.sources[given]
	if s == nil {
		name := clip(given, MaxName)
		if s = b.sources[name]; s == nil {
			s = &sourceState{name: name}
		}
		b.sources[given] = s
	}
	return s
}

func (b *batcher) metric(given string) *metricState {
	m := b.metrics[given]
	switch {
	case m != nil:
	case len(b.metrics) < maxMetrics:
		m = &metricState{name: clip(given, MaxName)}
		b.metrics[given] = m
		if !slices.Contains(b.order, m.name) {
			b.order = append(b.order, m.name)
		}
	default:
		m = &b.others
	}
	return m
}

// put adds a point to the batch, or to a window that thins where the cap allows no
// more.
func (b *batcher) put(p collector.Point, m *metricState) {
	key := windowKey{p.Source, p.Metric}
	w := b.thinned[key]
	if w == nil && b.rate > 0 && m.kept+m.held >= b.allowed {
		w = b.thin(key, m)
	}
	if w != nil {
		before := w.held()
		w.add(p)
		b.held += w.held() - before
	} else {
		b.batch = append(b.batch, p)
		m.held++
	}
	if b.opened.IsZero() {
		now := time.Now()
		b.opened = now
		b.timer.Reset(max(minLinger, maxLinger-now.Sub(b.sent)))
	}
	if b.size() >= MaxBatch {
		b.call()
	}
}

// thin moves the points of a series from the batch to a window.
func (b *batcher) thin(key windowKey, m *metricState) *window {
	if !m.capped {
		m.capped = true
		b.notes.cap(key.metric)
	}
	ours := func(p collector.Point) bool { return p.Source == key.source && p.Metric == key.metric }
	var moved []collector.Point
	for _, p := range b.batch {
		if ours(p) {
			moved = append(moved, p)
		}
	}
	b.batch = slices.DeleteFunc(b.batch, ours)
	m.held -= int64(len(moved))
	w := newWindow(m, len(moved))
	for _, p := range moved {
		w.add(p)
	}
	b.held += w.held()
	b.thinned[key] = w
	return w
}

// ready reports whether there is a batch to send: a full one or one that has
// waited long enough.
func (b *batcher) ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size() >= MaxBatch || b.expired && b.size() > 0
}

// collect takes the batch: the points of each source in order of Seq. It is
// valid until the next call.
func (b *batcher) collect() []collector.Point {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer.Stop()
	for _, m := range b.metrics {
		m.kept, m.held = m.kept+m.held, 0
	}
	b.others.kept, b.others.held = b.others.kept+b.others.held, 0
	for _, w := range b.thinned {
		points := w.points()
		b.batch = append(b.batch, points...)
		kept := int64(len(points))
		w.metric.kept += kept
		b.stats.Capped += w.raw - kept
		b.notes.capped += w.raw - kept
	}
	if len(b.thinned) > 0 {
		sortBySeq(b.batch)
	}
	clear(b.thinned)
	clear(b.spare[:cap(b.spare)]) // of strings
	batch := b.batch
	b.batch, b.spare = b.spare[:0], batch
	b.held, b.expired = 0, false
	b.opened, b.sent = time.Time{}, time.Now()
	b.allow()
	b.taken.Broadcast()
	return batch
}

// answered takes in what the service has stored.
func (b *batcher) answered(points, bytes int, acked map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Sent += int64(points)
	b.stats.Batches++
	b.stats.Bytes += int64(bytes)
	for name, next := range acked {
		if s := b.sources[name]; s != nil {
			s.stored = max(s.stored, next)
		}
	}
}

// refuse counts points that the service did not want.
func (b *batcher) refuse(points int, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Refused += int64(points)
	b.notes.refuse(points, why)
}

// giveUp counts points that the service did not take in the time that there was.
func (b *batcher) giveUp(points int, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Undelivered += int64(points)
	b.notes.giveUp(points, why)
}

func (b *batcher) retried() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Retries++
}

func (b *batcher) note() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.notes.String()
}

// summary is that of all points that were read.
func (b *batcher) summary(attempt collector.Attempt, final bool) contract.Summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := contract.Summary{Attempt: attempt, Final: final, Note: b.notes.String()}
	for _, name := range b.order {
		if m := b.metrics[name]; m != nil {
			if one, ok := contract.Summarize(name, &m.all); ok {
				s.Metrics = append(s.Metrics, one)
			}
		}
	}
	return s
}

// oldest is when the batch got its first point, or the zero time.
func (b *batcher) oldest() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}
