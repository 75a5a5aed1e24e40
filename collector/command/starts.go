package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/events"
)

// A container may be started again in its pod. Of kinds that do not wrap the
// program, "collector env" tells: it takes the next attempt, waits until run has
// drawn the line between what is there and what the new start will write, and then
// becomes the program.
const (
	// goName is a file of an attempt, made when the line is drawn.
	goName = "go"
	// startPatience is how long a program waits for that.
	startPatience = 10 * time.Second
	// startPoll is how often starts are looked for. A program waits for it.
	startPoll = 50 * time.Millisecond
	// readPatience is how long the new start waits until what the last one wrote is
	// read, which it may truncate.
	readPatience = 2 * time.Second
)

// line is what goName holds.
type line struct {
	// Offset is where the journal ended (Push, PrometheusMetric).
	Offset int64 `json:"offset"`
}

// announceStart takes the next attempt and waits for the line. That nobody draws
// it is no reason not to run.
func announceStart(dir string) error {
	attempt, lock, err := newAttempt(dir, start{time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := lock.Close(); err != nil {
		return err
	}
	for end := time.Now().Add(startPatience); time.Now().Before(end); time.Sleep(readyPoll) {
		if _, err := os.Stat(filepath.Join(attempt, goName)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the collector's sidecar does not answer; what this start measures may count as that of the last one")
}

// starts sees the program of a kind that wraps nothing start again.
type starts struct {
	r    *runner
	part *part // of kinds that read files: the attempt that goes on

	mu    sync.Mutex
	begun []start // after the first
	lines []line  // where their points begin (Push, PrometheusMetric)
}

// part is one attempt that reads files, up to where the next begins.
type part struct {
	over  over
	until atomic.Pointer[source.Before]
	read  chan struct{} // closed when all of it was read once
	once  sync.Once
}

// further is a start of the program after the first, with the line before it.
type further struct {
	start start
	line  line
}

// drawn are the starts before which an earlier collector drew a line.
func (s *starts) drawn() ([]further, error) {
	var all []further
	for n := 1; ; n++ {
		var f further
		err := readJSON(filepath.Join(attemptDir(s.r.cfg.dir, n), goName), &f.line)
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		if err == nil {
			err = readJSON(filepath.Join(attemptDir(s.r.cfg.dir, n), startName), &f.start)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
}

// first begins the attempts that an earlier collector knew, each no further than
// to the line behind it, and the one that goes on, before the program can start.
func (s *starts) first(ctx context.Context) error {
	drawn, err := s.drawn()
	if err != nil {
		return err
	}
	if s.r.kind.restart != restartFiles {
		for _, f := range drawn {
			s.begun, s.lines = append(s.begun, f.start), append(s.lines, f.line)
		}
		return s.begin(ctx, 0, time.Now(), nil)
	}
	began := time.Now()
	for n, f := range drawn {
		until, err := s.before(n + 1)
		if err != nil {
			return err
		}
		if err := s.begin(ctx, n, began, until); err != nil {
			return err
		}
		began = f.start.Started
	}
	return s.begin(ctx, len(drawn), began, nil)
}

// before is what start n finds in the files.
func (s *starts) before(n int) (*source.Before, error) {
	return source.RecordBefore(s.r.cfg.path, filepath.Join(attemptDir(s.r.cfg.dir, n), fileBefore), false, readableTable)
}

// begin begins an attempt of a kind that reads files, or the first of another.
// until is where it ended, nil when it goes on.
func (s *starts) begin(ctx context.Context, n int, began time.Time, until *source.Before) error {
	r := s.r
	attempt := collector.Attempt{ID: r.cfg.podUID + "/" + strconv.Itoa(n), Started: began}
	if r.kind.restart != restartFiles {
		return r.begin(ctx, n, attempt, r.drain)
	}
	s.part = &part{over: over{c: make(chan struct{})}, read: make(chan struct{})}
	if until != nil {
		s.part.until.Store(until)
		s.part.over.say()
	}
	j := job{cfg: r.cfg, n: n, dir: attemptDir(r.cfg.dir, n), drain: s.part.over.c, part: s.part}
	open, err := r.kind.prepare(ctx, j)
	if err != nil {
		return fmt.Errorf("attempt %s: %w", attempt.ID, err)
	}
	r.report(ctx, n, attempt, j.drain, open)
	return nil
}

// watch draws a line for each further start, until the sidecar is told to end.
func (s *starts) watch(ctx context.Context) {
	r := s.r
	for n := 0; ; {
		dir := attemptDir(r.cfg.dir, n)
		var begun start
		err := readJSON(filepath.Join(dir, startName), &begun)
		if err == nil {
			if _, err := os.Stat(filepath.Join(dir, goName)); err != nil {
				if err := s.line(ctx, n, begun); err != nil {
					r.log.Error("a further start of the program is not told from the last", "error", err)
					r.fail(err)
				}
			}
			n++
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			r.fail(fmt.Errorf("read attempt %d: %w", n, err))
			<-r.drain
		}
		select {
		case <-r.drain:
			if s.part != nil {
				s.part.over.say()
			}
			return
		case <-time.After(startPoll):
		}
	}
}

// line draws the line before start n, which waits for it.
func (s *starts) line(ctx context.Context, n int, begun start) error {
	var l line
	if n > 0 {
		if end := s.r.journalEnd; end != nil {
			l.Offset = end()
		}
		if err := s.draw(ctx, n, begun, l); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(attemptDir(s.r.cfg.dir, n), goName), l)
}

func (s *starts) draw(ctx context.Context, n int, begun start, l line) error {
	switch s.r.kind.restart {
	case restartFiles:
		last := s.part
		before, err := s.before(n)
		if err != nil {
			return err
		}
		last.until.Store(before)
		last.over.say()
		select {
		case <-last.read:
		case <-time.After(readPatience):
		}
		return s.begin(ctx, n, begun.Started, nil)
	case restartJournal:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begun, s.lines = append(s.begun, begun), append(s.lines, l)
	}
	return nil
}

// split gives each point of a journal the start that it came after.
func (s *starts) split(from collector.Source) func(ctx context.Context) iter.Seq2[events.SessionPoint, error] {
	return func(ctx context.Context) iter.Seq2[events.SessionPoint, error] {
		return func(yield func(events.SessionPoint, error) bool) {
			for p, err := range from.Points(ctx) {
				one := events.SessionPoint{Point: p, Began: []time.Time{{}}}
				s.mu.Lock()
				for i, l := range s.lines {
					if err == nil && p.Seq >= l.Offset {
						one.Session, one.Began = i+1, append(one.Began, s.begun[i].Started)
					}
				}
				s.mu.Unlock()
				if !yield(one, err) {
					return
				}
			}
		}
	}
}

// ended notes that a source of a part was read to its end.
func (p *part) ended(s collector.Source) collector.Source { return &endNoted{s, p} }

type endNoted struct {
	collector.Source
	part *part
}

// Points implements collector.Source.
func (e *endNoted) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for p, err := range e.Source.Points(ctx) {
			if !yield(p, err) {
				return
			}
		}
		e.part.once.Do(func() { close(e.part.read) })
	}
}
