package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
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
	// readPatience is how long the new start waits until what the last one wrote is
	// read, which it may truncate.
	readPatience = 2 * time.Second
)

// line is what goName holds.
type line struct {
	// Offset is where the journal ended (Push, PrometheusMetric).
	Offset int64 `json:"offset"`
}

// further is a start of the program after the first, with the line before it.
type further struct {
	start start
	line  line
}

// announceStart takes the next attempt and waits for the line. The program
// runs even if no sidecar answers.
func announceStart(dir string) error {
	attempt, lock, err := newAttempt(dir, start{time.Now().UTC()})
	if err != nil {
		return err
	}
	if err := lock.Close(); err != nil {
		return err
	}
	for end := time.Now().Add(startPatience); time.Now().Before(end); time.Sleep(readyPoll) { //nolint:forbidigo // the poll of a wait for something
		if _, err := os.Stat(filepath.Join(attempt, goName)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the collector's sidecar does not answer; what this start measures may count as that of the last one")
}

// drawn are the starts before which an earlier collector drew a line.
func (r *runner) drawn() ([]further, error) {
	var all []further
	for n := 1; ; n++ {
		var f further
		err := readJSON(filepath.Join(attemptDir(r.cfg.dir, n), goName), &f.line)
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		if err == nil {
			err = readJSON(filepath.Join(attemptDir(r.cfg.dir, n), startName), &f.start)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
}

// first begins the attempts that an earlier collector knew, each no further than
// to the line behind it, and the one that goes on, before the program can start.
func (r *runner) first(ctx context.Context) error {
	drawn, err := r.drawn()
	if err != nil {
		return err
	}
	began := time.Now()
	if !r.kind.splitsFiles {
		r.starts = drawn
		return r.begin(ctx, 0, began, nil)
	}
	for n, f := range drawn {
		until, err := r.found(n + 1)
		if err != nil {
			return err
		}
		if err := r.begin(ctx, n, began, until); err != nil {
			return err
		}
		began = f.start.Started
	}
	return r.begin(ctx, len(drawn), began, nil)
}

// found is what start n finds in the files.
func (r *runner) found(n int) (*source.Before, error) {
	return source.RecordBefore(r.cfg.path, filepath.Join(attemptDir(r.cfg.dir, n), fileBefore), false, readableTable)
}

// line draws the line before start n, which waits for it.
func (r *runner) line(ctx context.Context, n int, s start) error {
	path := filepath.Join(attemptDir(r.cfg.dir, n), goName)
	if _, err := os.Stat(path); err == nil {
		return nil // by an earlier collector
	}
	var l line
	switch {
	case n == 0:
	case r.kind.splitsFiles:
		last := r.current
		until, err := r.found(n)
		if err != nil {
			return err
		}
		last.until.Store(until)
		last.end()
		select {
		case <-last.read:
		case <-time.After(readPatience):
		}
		if err := r.begin(ctx, n, s.Started, nil); err != nil {
			return err
		}
	case r.journalEnd != nil:
		l.Offset = r.journalEnd()
		r.mu.Lock()
		r.starts = append(r.starts, further{s, l})
		r.mu.Unlock()
	}
	return writeJSON(path, l)
}

// split gives each point of a journal the start that it came after.
func (r *runner) split(from collector.Source) func(ctx context.Context) iter.Seq2[events.SessionPoint, error] {
	return func(ctx context.Context) iter.Seq2[events.SessionPoint, error] {
		return func(yield func(events.SessionPoint, error) bool) {
			for p, err := range from.Points(ctx) {
				one := events.SessionPoint{Point: p, Began: []time.Time{{}}}
				r.mu.Lock()
				for i, f := range r.starts {
					if err == nil && p.Seq >= f.line.Offset {
						one.Session, one.Began = i+1, append(one.Began, f.start.Started)
					}
				}
				r.mu.Unlock()
				if !yield(one, err) {
					return
				}
			}
		}
	}
}

// readToEnd closes a channel once a source was read to its end.
type readToEnd struct {
	collector.Source
	read chan struct{}
}

// Points implements collector.Source. It is called again only after it was cut short.
func (e *readToEnd) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for p, err := range e.Source.Points(ctx) {
			if !yield(p, err) {
				return
			}
		}
		select {
		case <-e.read:
		default:
			close(e.read)
		}
	}
}
