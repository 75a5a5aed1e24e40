package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// DefaultSpoolLimit is the space that a spool may take, in bytes: about a
// million points.
const DefaultSpoolLimit = 128 << 20

// Spool gives points that come from no file a file, so that neither a service
// that is away nor a collector that is killed loses them. Seq is the offset in
// that file.
type Spool struct {
	path   string
	source string
	limit  int64
	file   *os.File
	end    atomic.Int64  // bytes that hold whole records
	more   chan struct{} // has an element when end moved
	filled chan struct{} // closed when Fill has returned
	failed []error       // what from could not read, the first ten; read after filled is closed
}

var _ collector.Source = (*Spool)(nil)

// maxFailed bounds the errors of a source that are kept.
const maxFailed = 10

// errSpoolFull is yielded when points had to be dropped.
var errSpoolFull = errors.New("the spool is full")

// OpenSpool opens the spool file, or makes it. A record that was half written
// when the last collector died is removed: nobody was told that it is safe.
// source is the name that its points get. limit is in bytes, 0 means
// DefaultSpoolLimit.
func OpenSpool(path, source string, limit int64) (*Spool, error) {
	if limit <= 0 {
		limit = DefaultSpoolLimit
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	s := &Spool{path: path, source: source, limit: limit, file: f,
		more: make(chan struct{}, 1), filled: make(chan struct{})}
	end, err := wholeRecords(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err != nil {
		return nil, fmt.Errorf("open spool %s: %w", path, errors.Join(err, f.Close()))
	}
	s.end.Store(end)
	return s, nil
}

func wholeRecords(f *os.File) (end int64, err error) {
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		chunk, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			end += int64(len(chunk))
		case errors.Is(err, io.EOF):
			return end, nil
		default:
			return 0, err // a record longer than the buffer cannot be ours
		}
	}
}

// Fill writes the points of from to the spool until from ends, once. A point is
// safe when from's yield returns. Points that find the spool full are dropped.
func (s *Spool) Fill(ctx context.Context, from collector.Source) error {
	defer close(s.filled)
	dropped := 0
	for p, err := range from.Points(ctx) {
		if err == nil {
			err = s.put(p)
		}
		if errors.Is(err, errSpoolFull) {
			dropped++
			continue
		}
		if err != nil && len(s.failed) < maxFailed {
			s.failed = append(s.failed, err)
		}
	}
	if dropped > 0 {
		s.failed = append(s.failed, fmt.Errorf("%d points dropped: %w", dropped, errSpoolFull))
	}
	return errors.Join(s.failed...)
}

// spooled is a record. Numbers that JSON does not have are in text.
type spooled struct {
	Metric string `json:"m"`
	Value  string `json:"v"`
	Text   string `json:"x,omitempty"`
	Step   int64  `json:"s"`
	Time   int64  `json:"t"`
}

func (s *Spool) put(p collector.Point) error {
	record, err := json.Marshal(spooled{clip(p.Metric, MaxName), strconv.FormatFloat(p.Value, 'g', -1, 64),
		clip(p.Text, MaxText), p.Step, unixNano(p.Time)})
	if err != nil {
		return err
	}
	end := s.end.Load()
	if end+int64(len(record))+1 > s.limit {
		return errSpoolFull
	}
	if _, err := s.file.WriteAt(append(record, '\n'), end); err != nil {
		return fmt.Errorf("write spool: %w", err)
	}
	s.end.Store(end + int64(len(record)) + 1)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return nil
}

// Points implements collector.Source. It ends after Fill has returned.
func (s *Spool) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		var at int64
		for {
			filled := isClosed(s.filled)
			end := s.end.Load()
			if !s.read(ctx, &at, end, yield) {
				return
			}
			if filled {
				for _, err := range s.failed {
					if !yield(collector.Point{}, err) {
						break
					}
				}
				return
			}
			select {
			case <-s.more:
			case <-s.filled:
			case <-ctx.Done():
				yield(collector.Point{}, ctx.Err())
				return
			}
		}
	}
}

// read yields the records in [at, end).
func (s *Spool) read(ctx context.Context, at *int64, end int64, yield func(collector.Point, error) bool) bool {
	lines := bufio.NewReader(io.NewSectionReader(s.file, *at, end-*at))
	for *at < end {
		if err := ctx.Err(); err != nil {
			yield(collector.Point{}, err)
			return false
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			yield(collector.Point{}, fmt.Errorf("read spool at %d: %w", *at, err))
			return false
		}
		p, err := parseSpooled(line)
		p.Source, p.Seq = s.source, *at
		*at += int64(len(line))
		if err != nil {
			p, err = collector.Point{}, fmt.Errorf("read spool at %d: %w", *at-int64(len(line)), err)
		}
		if !yield(p, err) {
			return false
		}
	}
	return true
}

func parseSpooled(line []byte) (collector.Point, error) {
	var r spooled
	if err := json.Unmarshal(bytes.TrimSpace(line), &r); err != nil {
		return collector.Point{}, err
	}
	value, err := strconv.ParseFloat(r.Value, 64)
	if err != nil {
		value = math.NaN()
	}
	var when time.Time
	if r.Time != 0 {
		when = time.Unix(0, r.Time).UTC()
	}
	return collector.Point{Metric: r.Metric, Value: value, Text: r.Text, Step: r.Step, Time: when}, nil
}

// Close closes the file; it stays where it is.
func (s *Spool) Close() error { return s.file.Close() }
