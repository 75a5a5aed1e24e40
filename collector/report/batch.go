package report

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
)

const (
	// DefaultRate is how many points a second of a metric are kept in the long
	// run, unless the user says otherwise.
	DefaultRate = 1000
	// burstSeconds is how much of the rate a metric may use ahead of its time: a
	// program of some minutes, or one that is read late, is kept whole.
	burstSeconds = 100
	// maxStretches bounds what one thinned series takes of a batch, four points for
	// each stretch.
	maxStretches = MaxBatch / 8
)

// batcher is where the sources put points and the sender takes them. It holds one
// batch: while that one is full and the one before it is being sent, the sources
// wait, and their offsets stay where they are.
//
// A series whose metric is beyond the cap on the rate is thinned within the batch. A
// batch covers its sources without a gap, and is stored as a whole or not at all. So
// it does not matter where batches begin and end, and a collector that was killed may
// cut them otherwise: the series keeps its extremes.
type batcher struct {
	rate  int64     // points a second of a metric; 0: no cap
	start time.Time // of the attempt
	order []string  // metrics in the order of the summary

	begun chan struct{} // has an element when a batch began
	ready chan struct{} // has an element when it should not linger
	taken sync.Cond     // the batch was taken

	mu      sync.Mutex
	sources map[string]*sourceState
	metrics map[string]*metricState
	others  metricState // the metrics beyond maxMetrics

	allowed int64 // points of a metric so far, by the cap
	batch   []collector.Point
	thinned bool
	filled  bool
	opened  time.Time // when the batch got its first point
	flying  time.Time // the same of the one that is being sent

	notes notes
	stats Stats
}

type sourceState struct {
	known  int64 // stored before this collector began, by Hello
	seen   int64 // largest Seq read plus one
	stored int64 // largest Seq acknowledged plus one
}

type metricState struct {
	all    collector.Aggregator
	kept   int64 // in batches that were taken
	held   int64 // in batch
	capped bool
}

func newBatcher(cfg Config) *batcher {
	b := &batcher{
		rate: cfg.Rate, start: cfg.Attempt.Started, order: slices.Clone(cfg.Metrics),
		begun: make(chan struct{}, 1), ready: make(chan struct{}, 1),
		sources: map[string]*sourceState{}, metrics: map[string]*metricState{},
	}
	b.taken.L = &b.mu
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
		b.sources[name] = &sourceState{known: next, stored: next}
	}
}

// allow works out how many points of each metric the cap allows by now.
func (b *batcher) allow() {
	b.allowed = b.rate * (burstSeconds + int64(max(time.Since(b.start), 0)/time.Second))
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// full reports whether the sources must wait until the batch was taken. A batch that
// is thinned must not span the time for which the service is away.
func (b *batcher) full() bool {
	return b.filled || b.thinned && time.Since(b.opened) > maxLinger
}

// trouble notes what a source could not read. It reports whether it was told for
// the first time.
func (b *batcher) trouble(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.notes.yet
	isNew := b.notes.add(err)
	if b.notes.yet != said {
		signal(b.begun)
		return false
	}
	b.stats.Troubles++
	var gap interface{ Dropped() int64 }
	if errors.As(err, &gap) {
		b.stats.DroppedBytes += gap.Dropped()
	}
	return isNew
}

// notFoundYet is what is said of wanted metrics that were not found so far.
func (b *batcher) notFoundYet() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.order, func(name string) bool { return b.metrics[name] == nil }) {
		return b.notes.yet
	}
	return ""
}

// take takes in a point. It waits while there is no room, and returns false when
// ctx ended meanwhile.
func (b *batcher) take(ctx context.Context, p collector.Point) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, m := b.source(&p), b.metric(&p)
	if p.Seq < s.seen {
		return true
	}
	s.seen = p.Seq + 1
	b.stats.Read++
	if p.Text != "" {
		p.Text = clip(p.Text, MaxText)
	}
	if m != &b.others {
		m.all.Add(collector.Attempt{}, p)
	}
	if p.Seq < s.known {
		m.kept = min(m.kept+1, max(b.allowed, m.kept))
		return true
	}
	for b.full() {
		signal(b.ready)
		b.taken.Wait()
		if ctx.Err() != nil {
			return false
		}
	}
	b.batch = append(b.batch, p)
	m.held++
	if len(b.batch) == 1 {
		b.opened = time.Now()
		signal(b.begun)
	}
	if len(b.batch) >= MaxBatch {
		b.thin()
		// Thinning must pay for itself: it looks at all of the batch.
		if b.filled = len(b.batch) > MaxBatch*3/4; b.filled {
			signal(b.ready)
		}
	}
	return true
}

// source returns the state of the point's source, whose name is clipped.
func (b *batcher) source(p *collector.Point) *sourceState {
	s := b.sources[p.Source]
	if s == nil {
		p.Source = clip(p.Source, MaxName)
		if s = b.sources[p.Source]; s == nil {
			s = &sourceState{}
			b.sources[p.Source] = s
		}
	}
	return s
}

// metric returns the state of the point's metric, whose name is clipped.
func (b *batcher) metric(p *collector.Point) *metricState {
	m := b.metrics[p.Metric]
	if m == nil {
		p.Metric = clip(p.Metric, MaxName)
		m = b.metrics[p.Metric]
	}
	switch {
	case m != nil:
		return m
	case len(b.metrics) >= maxMetrics:
		return &b.others
	}
	m = &metricState{}
	b.metrics[p.Metric] = m
	if !slices.Contains(b.order, p.Metric) {
		b.order = append(b.order, p.Metric)
	}
	return m
}

// thin condenses each series of which the batch has more than the cap allows.
func (b *batcher) thin() {
	if b.rate == 0 {
		return
	}
	type series struct{ source, metric string }
	var order []series
	over := map[series][]collector.Point{}
	rest := b.batch[:0]
	for _, p := range b.batch {
		if m := b.metric(&p); m.kept+m.held > b.allowed {
			key := series{p.Source, p.Metric}
			if over[key] == nil {
				order = append(order, key)
			}
			over[key] = append(over[key], p)
		} else {
			rest = append(rest, p)
		}
	}
	b.batch = rest
	for _, key := range order {
		points := over[key]
		m := b.metric(&points[0])
		kept := collector.Thin(points, int(min(max((b.allowed-m.kept)/4, 2), maxStretches)))
		b.batch = append(b.batch, kept...)
		left := int64(len(points) - len(kept))
		m.held -= left
		b.stats.Capped += left
		b.notes.capped += left
		if !m.capped {
			m.capped = true
			b.notes.cap(key.metric)
		}
		b.thinned = true
	}
}

// collect takes the batch: the points of each source in order of Seq.
func (b *batcher) collect() []collector.Point {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.thin()
	if b.thinned {
		slices.SortFunc(b.batch, func(p, q collector.Point) int { return cmp.Compare(p.Seq, q.Seq) })
	}
	for _, m := range b.metrics {
		m.kept, m.held = m.kept+m.held, 0
	}
	b.others.kept, b.others.held = b.others.kept+b.others.held, 0
	batch := b.batch
	b.batch = nil
	b.flying, b.opened = b.opened, time.Time{}
	b.thinned, b.filled = false, false
	select {
	case <-b.ready: // meant this batch
	default:
	}
	b.allow()
	b.taken.Broadcast()
	return batch
}

// landed says that the batch is not being sent any more.
func (b *batcher) landed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying = time.Time{}
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

// account changes what is said of the points.
func (b *batcher) account(change func(*Stats, *notes)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.stats, &b.notes)
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
