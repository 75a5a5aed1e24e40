package source

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// DefaultJournalLimit is the space that a journal may take, in bytes: about ten
// million points.
const DefaultJournalLimit = 512 << 20

// maxReportPoints bounds the points of one request, so that a line of the
// journal stays small enough to be held in memory.
const maxReportPoints = 10_000

var (
	// errJournalFull says that a request was not taken for want of space.
	errJournalFull = errors.New("the space for pushed points is used up")
	// errJournalClosed says that the trial is over.
	errJournalClosed = errors.New("the program has ended; nothing is taken any more")
)

// entry is what one request changed. It is one line of the journal: all of it is
// there or nothing, also when the collector is killed while it writes.
type entry struct {
	// Key is the request's own identity, hashed; zero means that it has none.
	Key digest `json:"k,omitzero"`
	// Run is the MLflow run that the points belong to.
	Run string `json:"r,omitempty"`
	// Trainer is set for a report of Kubeflow Trainer's status.
	Trainer bool `json:"t,omitempty"`
	// Step is the newest step there, when it is news.
	Step   int64        `json:"s,omitempty"`
	Points []entryPoint `json:"p,omitempty"`
	// Event is a change of MLflow's runs and experiments.
	Event *mlflowEvent `json:"e,omitempty"`
}

// entryPoint is a point as it is written down.
type entryPoint struct {
	Metric string `json:"m"`
	// Value is what strconv.ParseFloat reads: JSON has no NaN.
	Value string `json:"v"`
	Text  string `json:"x,omitempty"`
	Step  int64  `json:"s"`
	// Time is in nanoseconds since the Unix epoch.
	Time int64 `json:"t"`
}

func newEntryPoint(s parse.Sample, now time.Time) entryPoint {
	at := s.Time
	if y := at.Year(); y < 1678 || y > 2261 { // what nanoseconds cannot say
		at = now
	}
	return entryPoint{Metric: s.Metric, Value: collector.FormatValue(s.Value), Text: s.Text, Step: s.Step, Time: at.UnixNano()}
}

func (p entryPoint) point(seq int64) collector.Point {
	value, err := strconv.ParseFloat(p.Value, 64)
	if err != nil {
		value = math.NaN()
	}
	return collector.Point{
		Metric: p.Metric, Value: value, Text: p.Text, Step: p.Step,
		Time: time.Unix(0, p.Time).UTC(), Source: "push", Seq: seq,
	}
}

// journal keeps what was pushed in a file. The Seq of a point is the offset of
// its line plus its place in it: no line has fewer bytes than points.
type journal struct {
	file  *os.File
	limit int64
	end   atomic.Int64  // bytes that hold whole lines
	more  chan struct{} // has an element when end moved
	done  chan struct{} // closed with the journal

	mu     sync.Mutex
	closed bool
}

// openJournal opens the file, or makes it, and calls replay with every entry. A
// line that was half written when the last collector died is removed: nobody was
// told that it is safe.
func openJournal(path string, limit int64, replay func(entry)) (_ *journal, err error) {
	if limit <= 0 {
		limit = DefaultJournalLimit
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal of pushed points: %w", err)
	}
	j := &journal{file: f, limit: limit, more: make(chan struct{}, 1), done: make(chan struct{})}
	end, err := j.replay(replay)
	if err == nil {
		err = f.Truncate(end)
	}
	if err != nil {
		return nil, fmt.Errorf("open the journal of pushed points %s: %w", path, errors.Join(err, f.Close()))
	}
	j.end.Store(end)
	return j, nil
}

// replay returns the end of the last whole line.
func (j *journal) replay(take func(entry)) (end int64, err error) {
	lines := bufio.NewReaderSize(j.file, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		end += int64(len(line))
		// A line that cannot be read is told by points, with its place.
		var e entry
		if json.Unmarshal(line, &e) == nil {
			take(e)
		}
	}
}

// append writes an entry and returns once it is safe from the collector's death.
// Afterwards, and before any other entry is written, it calls apply.
func (j *journal) append(build func() (e entry, changed bool), apply func(entry)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errJournalClosed
	}
	e, changed := build()
	if !changed {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write down what was pushed: %w", err)
	}
	line = append(line, '\n')
	end := j.end.Load()
	if end+int64(len(line)) > j.limit {
		return errJournalFull
	}
	if _, err := j.file.WriteAt(line, end); err != nil {
		// What was written of it would be taken for the next line's beginning.
		return fmt.Errorf("write down what was pushed: %w", errors.Join(err, j.file.Truncate(end)))
	}
	apply(e)
	j.end.Store(end + int64(len(line)))
	select {
	case j.more <- struct{}{}:
	default:
	}
	return nil
}

// close ends the journal: what comes later is refused.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.closed = true
		close(j.done)
	}
}

// points yields all points from the beginning, waits for more, and returns when
// the journal is closed and read, when ctx ends, or when yield has had enough.
func (j *journal) points(ctx context.Context, yield func(collector.Point, error) bool) {
	var at int64
	for {
		last := closed(j.done)
		if !j.read(ctx, &at, j.end.Load(), yield) {
			return
		}
		if last {
			return
		}
		select {
		case <-j.more:
		case <-j.done:
		case <-ctx.Done():
			yield(collector.Point{}, ctx.Err())
			return
		}
	}
}

// read yields the points of the lines in [at, end).
func (j *journal) read(ctx context.Context, at *int64, end int64, yield func(collector.Point, error) bool) bool {
	lines := bufio.NewReader(io.NewSectionReader(j.file, *at, end-*at))
	for *at < end {
		if err := ctx.Err(); err != nil {
			yield(collector.Point{}, err)
			return false
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			yield(collector.Point{}, fmt.Errorf("read the journal of pushed points at %d: %w", *at, err))
			return false
		}
		start := *at
		*at += int64(len(line))
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			if !yield(collector.Point{}, fmt.Errorf("read the journal of pushed points at %d: %w", start, err)) {
				return false
			}
			continue
		}
		for i, p := range e.Points {
			if !yield(p.point(start+int64(i)), nil) {
				return false
			}
		}
	}
	return true
}

// scan calls take with the entries from an offset on, until it has had enough.
// next is the offset of the first entry that was not taken, 0 when there is none.
func (j *journal) scan(from int64, take func(entry) (more bool)) (next int64, err error) {
	end := j.end.Load()
	lines := bufio.NewReader(io.NewSectionReader(j.file, from, end-from))
	for at := from; at < end; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0, fmt.Errorf("read the journal of pushed points at %d: %w", at, err)
		}
		at += int64(len(line))
		var e entry
		if json.Unmarshal(line, &e) == nil && !take(e) && at < end {
			return at, nil
		}
	}
	return 0, nil
}
