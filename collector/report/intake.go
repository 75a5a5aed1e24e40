package report

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// maxStretches bounds what one condensed series takes of a batch.
const maxStretches = MaxBatch / 8

// intake is where the sources put points and the sender takes them. It holds one
// batch: while that one is full and the one before it is being sent, the sources
// wait, and their offsets stay where they are.
type intake struct {
	rate  int64     // points a second of a metric; 0: no cap
	start time.Time // of the attempt
	tally *tally

	mu      sync.Mutex
	room    sync.Cond     // the batch was taken
	wake    chan struct{} // has an element when the sender should look
	timer   *time.Timer   // ends the linger of a batch
	expired bool          // it has

	sources map[string]*sourceState // by the name that the source gives
	metrics map[string]*metricState
	others  metricState // the metrics beyond maxMetrics
	windows map[windowKey]*window
	used    []windowKey // in order
	spare   []*window
	batch   []collector.Point

	allowed    int64 // points of a metric so far, by the cap
	held       int
	condensing bool
	opened     time.Time // when the batch got its first point
	sent       time.Time // when the last one was taken

	notes notes
	stats Stats
	last  struct { // the series of the last point
		source, metric string
		s              *sourceState
		m              *metricState
		w              *window
	}
}

type sourceState struct {
	name   string
	known  int64 // stored before this collector began, by Hello
	seen   int64 // largest Seq read plus one
	stored int64 // largest Seq acknowledged plus one
}

type metricState struct {
	name   string
	kept   int64 // in batches that were taken
	held   int64 // in the batch that is being filled
	capped bool
}

type windowKey struct {
	source *sourceState
	metric string
}

func newIntake(cfg Config) *intake {
	in := &intake{
		rate: cfg.Rate, start: cfg.Attempt.Started, tally: newTally(cfg.Metrics), wake: make(chan struct{}, 1),
		sources: map[string]*sourceState{}, metrics: map[string]*metricState{}, windows: map[windowKey]*window{},
	}
	in.room.L = &in.mu
	in.timer = time.AfterFunc(time.Hour, in.expire)
	in.timer.Stop()
	if now := time.Now(); in.start.IsZero() || in.start.After(now) {
		in.start = now
	}
	in.notes.rate = cfg.Rate
	in.allow()
	return in
}

// acknowledged takes in what Hello said.
func (in *intake) acknowledged(acked map[string]int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for name, next := range acked {
		in.sources[name] = &sourceState{name: name, known: next, stored: next}
	}
}

// allow works out how many points of each metric the cap allows by now.
func (in *intake) allow() {
	elapsed := max(time.Since(in.start), 0)
	in.allowed = in.rate * (burstSeconds + int64(elapsed/time.Second))
}

func (in *intake) expire() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expired = true
	in.call()
}

// call makes the sender look.
func (in *intake) call() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// full reports whether the sources must wait until the batch was taken. A
// condensed batch never fills; it must not span the time for which the service
// is away.
func (in *intake) full() bool { return in.held >= MaxBatch || in.expired && in.condensing }

// trouble notes what a source could not read. It reports whether it was told for
// the first time.
func (in *intake) trouble(err error) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stats.Troubles++
	var gap interface{ Dropped() int64 }
	if errors.As(err, &gap) {
		in.stats.DroppedBytes += gap.Dropped()
	}
	var missing interface{ Missing() []string }
	if errors.As(err, &missing) {
		return in.notes.miss(err.Error())
	}
	return in.notes.add(err.Error())
}

// take takes in a point. It waits while there is no room, and returns false when
// ctx ended meanwhile.
func (in *intake) take(ctx context.Context, p collector.Point) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.find(p)
	s, m := in.last.s, in.last.m
	if p.Seq < s.seen {
		return true
	}
	s.seen = p.Seq + 1
	in.stats.Read++
	p.Source = s.name
	if m != &in.others {
		p.Metric = m.name
	} else {
		p.Metric = clip(p.Metric, MaxName)
	}
	if p.Text != "" {
		p.Text = clip(p.Text, MaxText)
	}
	in.tally.add(p)
	if p.Seq < s.known {
		m.kept = min(m.kept+1, max(in.allowed, m.kept))
		return true
	}
	for in.full() {
		in.call()
		in.room.Wait()
		if ctx.Err() != nil {
			return false
		}
	}
	in.put(p, s, m)
	return true
}

// find sets last to the series of a point. Points mostly come with the same
// names as the one before.
func (in *intake) find(p collector.Point) {
	l := &in.last
	if l.s == nil || l.source != p.Source {
		s := in.sources[p.Source]
		if s == nil {
			name := clip(p.Source, MaxName)
			if s = in.sources[name]; s == nil {
				s = &sourceState{name: name}
			}
			in.sources[p.Source] = s
		}
		l.source, l.s, l.w = p.Source, s, nil
	}
	if l.m == nil || l.metric != p.Metric {
		m := in.metrics[p.Metric]
		switch {
		case m != nil:
		case len(in.metrics) < maxMetrics:
			m = &metricState{name: clip(p.Metric, MaxName)}
			in.metrics[p.Metric] = m
		default:
			m = &in.others
		}
		l.metric, l.m, l.w = p.Metric, m, nil
	}
}

// put adds a point to the batch.
func (in *intake) put(p collector.Point, s *sourceState, m *metricState) {
	w := in.last.w
	if w == nil {
		w = in.window(windowKey{s, p.Metric})
		in.last.w = w
	}
	before := w.held()
	if in.rate > 0 && w.width == 0 && m.kept+m.held >= in.allowed {
		w.condensed(min(len(w.all), maxStretches*usuallyKept))
		in.condensing = true
		if !m.capped {
			m.capped = true
			in.notes.cap(p.Metric)
		}
	}
	w.add(p)
	if w.width == 0 {
		m.held++
	}
	in.held += w.held() - before
	if in.opened.IsZero() {
		now := time.Now()
		in.opened = now
		in.timer.Reset(max(minLinger, maxLinger-now.Sub(in.sent)))
	}
	if in.held >= MaxBatch {
		in.call()
	}
}

func (in *intake) window(key windowKey) *window {
	w := in.windows[key]
	if w != nil {
		return w
	}
	if n := len(in.spare); n > 0 {
		w, in.spare = in.spare[n-1], in.spare[:n-1]
	} else {
		w = &window{}
	}
	in.windows[key] = w
	in.used = append(in.used, key)
	return w
}

// ready reports whether there is a batch to send: a full one or one that has
// waited long enough.
func (in *intake) ready() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.held >= MaxBatch || in.expired && len(in.used) > 0
}

// collect takes the batch: the points of each source in order of Seq. It is
// valid until the next call.
func (in *intake) collect() []collector.Point {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.timer.Stop()
	clear(in.batch) // of strings
	in.batch = in.batch[:0]
	for _, key := range in.used {
		w := in.windows[key]
		before := len(in.batch)
		in.batch = w.appendTo(in.batch)
		kept := int64(len(in.batch) - before)
		in.stats.Capped += w.raw - kept
		in.notes.capped += w.raw - kept
		m := in.metrics[key.metric]
		if m == nil {
			m = &in.others
		}
		m.kept += kept
		m.held = 0
		in.release(w)
	}
	if len(in.used) > 1 {
		sortBySeq(in.batch)
	}
	clear(in.windows)
	in.used = in.used[:0]
	in.last.w = nil
	in.held, in.condensing, in.expired = 0, false, false
	in.opened, in.sent = time.Time{}, time.Now()
	in.allow()
	in.room.Broadcast()
	return in.batch
}

// maxSpare bounds the windows that are kept for the next batch, and the points
// that one of them has room for.
const maxSpare = 64

func (in *intake) release(w *window) {
	if len(in.spare) < maxSpare {
		w.reset()
		in.spare = append(in.spare, w)
	}
}

// answered takes in what the service has stored.
func (in *intake) answered(points, bytes int, acked map[string]int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stats.Sent += int64(points)
	in.stats.Batches++
	in.stats.Bytes += int64(bytes)
	for name, next := range acked {
		if s := in.sources[name]; s != nil {
			s.stored = max(s.stored, next)
		}
	}
}

// refuse counts points that the service did not want.
func (in *intake) refuse(points int, why error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stats.Refused += int64(points)
	in.notes.refuse(points, why)
}

// giveUp counts points that the service did not take in the time that there was.
func (in *intake) giveUp(points int, why error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stats.Undelivered += int64(points)
	in.notes.giveUp(points, why)
}

func (in *intake) retried() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stats.Retries++
}

func (in *intake) note() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.notes.String()
}

// oldest is when the batch got its first point, or the zero time.
func (in *intake) oldest() time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.opened
}
