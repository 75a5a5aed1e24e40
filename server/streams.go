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
	// maxStreams bounds the streams that are remembered, and maxStreamSources the
	// sources of one of them.
	maxStreams       = 20_000
	maxStreamSources = 64
)

// stream is what one attempt of a trial reports.
type stream struct{ trial, attempt string }

// streams remembers, for the metrics alone, how far the streams of late have come.
// What it forgets costs a count, never a point.
type streams struct {
	now  func() time.Time
	seed maphash.Seed

	mu    sync.Mutex
	all   map[stream]*streamState
	swept time.Time
}

type streamState struct {
	// acked is by the hash of a source: clients choose the names, which may be long.
	acked map[uint64]int64
	last  time.Time
	final bool
}

func newStreams(now func() time.Time) *streams {
	return &streams{now: now, seed: maphash.MakeSeed(), all: map[stream]*streamState{}}
}

// hello takes in what the store has of a stream.
func (l *streams) hello(key stream, acked map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.touch(key)
	for source, next := range acked {
		s.move(maphash.String(l.seed, source), next)
	}
}

// stored takes in what was stored and returns how many of the points of each
// source had been stored before.
func (l *streams) stored(key stream, points []collector.Point, final bool) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.touch(key)
	s.final = s.final || final
	again := map[string]int{}
	before := maps.Clone(s.acked)
	for i := range points {
		p := &points[i]
		hash := maphash.String(l.seed, p.Source)
		if p.Seq < before[hash] {
			again[p.Source]++
		}
		s.move(hash, p.Seq+1)
	}
	return again
}

// live counts the streams that are not over.
func (l *streams) live() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, now := 0, l.now()
	for _, s := range l.all {
		if !s.final && now.Sub(s.last) < liveFor {
			n++
		}
	}
	return float64(n)
}

func (l *streams) touch(key stream) *streamState {
	now := l.now()
	s := l.all[key]
	if s == nil {
		if len(l.all) >= maxStreams || now.Sub(l.swept) >= knownFor {
			l.swept = now
			maps.DeleteFunc(l.all, func(_ stream, s *streamState) bool { return s.final || now.Sub(s.last) >= knownFor })
		}
		if len(l.all) >= maxStreams {
			clear(l.all)
		}
		s = &streamState{acked: map[uint64]int64{}}
		l.all[key] = s
	}
	s.last = now
	return s
}

func (s *streamState) move(source uint64, next int64) {
	at, known := s.acked[source]
	if known || len(s.acked) < maxStreamSources {
		s.acked[source] = max(at, next)
	}
}
