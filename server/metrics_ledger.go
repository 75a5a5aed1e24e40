package server

import (
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// A stream that was silent for this long is not counted as live.
	liveFor = time.Minute
	// One that was silent for this long is forgotten; then what it sends again is
	// not known to be a duplicate.
	knownFor = 10 * time.Minute
	// maxStreams bounds the streams that are remembered.
	maxStreams = 20_000
	// maxStreamSources bounds the sources of one of them.
	maxStreamSources = 64
)

// stream is what one attempt of a trial reports.
type stream struct{ trial, attempt string }

// ledger remembers, for the metrics alone, how far the streams of late have come.
// What it forgets costs a count, never a point.
type ledger struct {
	now  func() time.Time
	seed maphash.Seed

	mu      sync.Mutex
	streams map[stream]*streamState
	swept   time.Time
}

type streamState struct {
	// acked is by the hash of a source: clients choose the names, which may be long.
	acked map[uint64]int64
	last  time.Time
	final bool
}

func newLedger(now func() time.Time) *ledger {
	return &ledger{now: now, seed: maphash.MakeSeed(), streams: map[stream]*streamState{}}
}

// hello takes in what the store has of a stream.
func (l *ledger) hello(key stream, acked map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.touch(key)
	for source, next := range acked {
		s.move(maphash.String(l.seed, source), next)
	}
}

// stored takes in what was stored and returns how many of the points of each
// source had been stored before.
func (l *ledger) stored(key stream, points []collector.Point, final bool) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.touch(key)
	s.final = s.final || final
	var again map[string]int
	before := maps.Clone(s.acked)
	source, hash := "", maphash.String(l.seed, "")
	for _, p := range points {
		if p.Source != source {
			source, hash = p.Source, maphash.String(l.seed, p.Source)
		}
		if p.Seq < before[hash] {
			if again == nil {
				again = map[string]int{}
			}
			again[p.Source]++
		}
		s.move(hash, p.Seq+1)
	}
	return again
}

// live counts the streams that are not over.
func (l *ledger) live() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, now := 0, l.now()
	for _, s := range l.streams {
		if !s.final && now.Sub(s.last) < liveFor {
			n++
		}
	}
	return float64(n)
}

func (l *ledger) touch(key stream) *streamState {
	now := l.now()
	s := l.streams[key]
	if s == nil {
		l.sweep(now)
		s = &streamState{acked: map[uint64]int64{}}
		l.streams[key] = s
	}
	s.last = now
	return s
}

// sweep makes room: once a while of what is old, at need of what is not live.
func (l *ledger) sweep(now time.Time) {
	if len(l.streams) < maxStreams && now.Sub(l.swept) < knownFor {
		return
	}
	l.swept = now
	maps.DeleteFunc(l.streams, func(_ stream, s *streamState) bool { return now.Sub(s.last) >= knownFor })
	if len(l.streams) < maxStreams {
		return
	}
	maps.DeleteFunc(l.streams, func(_ stream, s *streamState) bool { return s.final || now.Sub(s.last) >= liveFor })
	if len(l.streams) >= maxStreams {
		clear(l.streams)
	}
}

func (s *streamState) move(source uint64, next int64) {
	at, known := s.acked[source]
	if known || len(s.acked) < maxStreamSources {
		s.acked[source] = max(at, next)
	}
}
