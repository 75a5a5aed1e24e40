package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
)

// CSVConfig describes a CSV.
type CSVConfig struct {
	// Path is the file to follow. It need not exist yet.
	Path string
	// Metrics are the names of the wanted columns.
	Metrics []string
	// State is a file in which the source remembers which tables it has seen
	// at Path, as FileConfig.State.
	State string
	// Before is what is passed over; nil: nothing.
	Before *Before
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock Clock
	// part: the metrics may be in other tables too; only a table with none of them
	// is told of.
	part bool
	// inner: whoever reads this table says what is passed over.
	inner bool
}

// CSV follows a table of comma-separated values to which a program appends rows,
// and which it may write anew: Lightning's CSVLogger rewrites all of it in place
// with a new header when a metric appears. Whenever what was read is not there
// any more, the file is read from its beginning; a row that was read is not
// yielded again.
//
// Each metric is a source of its own, named "file:", the path, "#" and the
// metric, and Seq is the number of the row, from 0. So the identity of a value
// does not depend on where its column stands, nor on which others there are. A
// cell that is filled after a later row of its column was read is not read: the
// place of its source is beyond it. How many there were is said at the end.
//
// A file whose first row is another than before is another table: 2^40 is added
// to Seq for each table that came before. First rows are compared where both
// have a value, numbers as numbers, so that a column may be added or a number
// written in another way.
type CSV struct{ cfg CSVConfig }

var _ collector.Source = (*CSV)(nil)

// NewCSV returns a source of the named columns.
func NewCSV(cfg CSVConfig) (*CSV, error) {
	if cfg.Path == "" {
		return nil, errors.New("a CSV source needs a path")
	}
	if _, err := parse.NewCSV(cfg.Metrics); err != nil {
		return nil, err
	}
	cfg.Clock = cfg.Clock.orReal()
	return &CSV{cfg: cfg}, nil
}

// Points implements collector.Source.
func (c *CSV) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		parser, err := parse.NewCSV(c.cfg.Metrics)
		if err != nil {
			yield(collector.Point{}, err)
			return
		}
		r := &csvRun{cfg: c.cfg, parser: parser, yield: yield, buf: make([]byte, readSize),
			series: map[string]*csvSeries{}, tables: tables{path: c.cfg.State}, table: -1}
		defer r.close()
		if note := c.cfg.Before.Note(); note != nil && !c.cfg.inner && !r.trouble(note) {
			return
		}
		if err := r.tables.load(); err != nil && !r.trouble(err) {
			return
		}
		follow(ctx, following{c.cfg.Clock, c.cfg.Drain, r, yield})
	}
}

// csvRun is one run of a CSV's Points.
type csvRun struct {
	cfg    CSVConfig
	parser *parse.CSV
	yield  func(collector.Point, error) bool
	buf    []byte
	series map[string]*csvSeries
	tables tables

	cur     *openFile
	header  []byte // the first record as it was read, with its line end
	check   []byte // what the header is compared with
	partial []byte // the record that has no end yet
	begin   int64  // where it begins
	cutting bool   // the rest of a record that is too long is being dropped
	passed  int64  // where what is passed over ends
	table   int    // the number of the table, -1 before its first row
	samples []parse.Sample
	now     time.Time // of the last read

	found  bool // there was a file at some time
	wanted bool // there was a wanted column at some time
	said   string
}

// poll implements poller.
func (r *csvRun) poll(ctx context.Context) (sawData, ok bool) {
	for ctx.Err() == nil {
		if r.cur == nil {
			f, err := openRegular(r.cfg.Path)
			if errors.Is(err, fs.ErrNotExist) {
				return sawData, true
			}
			if err != nil {
				return sawData, r.trouble(err)
			}
			r.cur, r.found = f, true
			r.restart()
		}
		n, ok := r.read()
		if !ok {
			return sawData, false
		}
		if n > 0 {
			sawData = true
			continue
		}
		if more, ok := r.advance(); !ok || !more {
			return sawData, ok
		}
	}
	return sawData, true
}

// read yields the points of the next bytes of the file. n is 0 at its end.
func (r *csvRun) read() (n int, ok bool) {
	n, err := r.cur.ReadAt(r.buf, r.cur.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, r.trouble(err)
	}
	if n == 0 {
		return 0, true
	}
	// Checked after the read: then what was read belongs to what was read before.
	if !r.intact() {
		r.restart()
		return n, true
	}
	r.now = r.cfg.Clock.Now()
	r.cur.passed(r.buf[:n])
	return n, r.feed(r.buf[:n])
}

// advance is called at the end of the file. more says whether there is something
// to read all the same.
func (r *csvRun) advance() (more, ok bool) {
	info, err := r.cur.Stat()
	if err != nil {
		return false, r.trouble(err)
	}
	if info.Size() < r.cur.off || !r.intact() {
		r.restart()
		return info.Size() > 0, true
	}
	if now, err := os.Stat(r.cfg.Path); err != nil || os.SameFile(now, info) || now.Size() == 0 {
		return false, true
	}
	r.cur.Close()
	r.cur = nil
	return true, true
}

// intact reports whether what was read is still there: all of the header, since
// a column may be added anywhere in it, and the bytes before the place of
// reading.
func (r *csvRun) intact() bool {
	if !r.cur.intact() {
		return false
	}
	if len(r.header) == 0 {
		return true
	}
	r.check = slices.Grow(r.check[:0], len(r.header))[:len(r.header)]
	n, _ := r.cur.ReadAt(r.check, 0) // a file that cannot be read does not hold it
	return bytes.Equal(r.check[:n], r.header)
}

// restart begins the file anew.
func (r *csvRun) restart() {
	r.cur.rewind()
	r.parser.Reset()
	r.header, r.partial, r.begin, r.cutting, r.table = nil, nil, 0, false, -1
	for _, s := range r.series {
		s.again = 0
	}
	r.passed = r.cfg.Before.size(r.cur)
}

// feed takes bytes that follow those before.
func (r *csvRun) feed(b []byte) bool {
	r.partial = append(r.partial, b...)
	rest := r.partial
	for {
		if r.cutting {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				r.skipped(len(rest))
				rest = rest[len(rest):]
				break
			}
			r.skipped(end + 1)
			rest, r.cutting = rest[end+1:], false
		}
		record, n := parse.CSVRecord(rest[:min(len(rest), maxLine)])
		if n == 0 && len(rest) < maxLine {
			break
		}
		if n == 0 {
			if !r.tooLong() {
				return false
			}
			r.skipped(maxLine)
			rest, r.cutting = rest[maxLine:], true
			continue
		}
		if r.header == nil {
			r.header = bytes.Clone(rest[:n])
		}
		r.samples, _ = r.parser.Parse(r.samples[:0], record)
		if !r.row() {
			return false
		}
		r.skipped(n)
		rest = rest[n:]
	}
	r.partial = append(r.partial[:0], rest...)
	if len(rest) == 0 && cap(r.partial) > 2*readSize {
		r.partial = nil
	}
	return true
}

func (r *csvRun) skipped(n int) { r.begin += int64(n) }

func (r *csvRun) tooLong() bool {
	r.parser.Skip()
	return r.yield(collector.Point{}, fmt.Errorf(
		"%s: the record at byte %d is longer than %d bytes, perhaps for a quote that is not closed; it was passed over up to the next line after that", r.cfg.Path, r.begin, maxLine))
}

// row yields the samples of the row that was parsed last.
func (r *csvRun) row() bool {
	r.wanted = r.wanted || r.parser.Wanted()
	if len(r.samples) == 0 || r.begin < r.passed {
		return true
	}
	if r.table < 0 && !r.identify() {
		return false
	}
	seq := int64(r.table)<<generationShift + r.parser.Rows() - 1
	for _, s := range r.samples {
		series := r.series[s.Metric]
		if series == nil {
			series = &csvSeries{source: "file:" + r.cfg.Path + "#" + s.Metric}
			r.series[s.Metric] = series
		}
		if !series.take(seq) {
			continue
		}
		p := collector.Point{Metric: s.Metric, Value: s.Value, Text: s.Text, Step: s.Step, Time: s.Time, Source: series.source, Seq: seq}
		if p.Time.IsZero() {
			p.Time = r.now
		}
		if !r.yield(p, nil) {
			return false
		}
	}
	return true
}

// identify makes sure that the table has its number before anything of it is
// yielded.
func (r *csvRun) identify() bool {
	number, err := r.tables.number(r.parser.FirstRow())
	r.table = number
	return err == nil || r.trouble(err)
}

// finish implements poller.
func (r *csvRun) finish() bool {
	if !r.found {
		return r.trouble(fmt.Errorf("%s was never written", r.cfg.Path))
	}
	if r.cur != nil && r.cfg.Before.rewritten(r.cur) {
		r.restart()
		for n, ok := r.read(); n > 0 || !ok; n, ok = r.read() {
			if !ok {
				return false
			}
		}
	}
	if len(r.partial) > 0 && !r.cutting {
		r.samples, _ = r.parser.ParseCut(r.samples[:0], bytes.TrimSuffix(r.partial, []byte("\r")))
		if !r.row() {
			return false
		}
	}
	return r.late() && r.missing()
}

// trouble yields an error unless it was the last one too.
func (r *csvRun) trouble(err error) bool {
	if err.Error() == r.said {
		return true
	}
	r.said = err.Error()
	return r.yield(collector.Point{}, fmt.Errorf("file:%s: %w", r.cfg.Path, err))
}

func (r *csvRun) close() {
	if r.cur != nil {
		r.cur.Close()
	}
}
