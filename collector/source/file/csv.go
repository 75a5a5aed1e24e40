package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// CSVConfig describes a CSV.
type CSVConfig struct {
	// Path is the file to follow. It need not exist yet.
	Path string
	// Metrics are the names of the wanted columns.
	Metrics []string
	// State is a file in which the source remembers which tables it has seen
	// at Path, as Config.State.
	State string
	// Before is what is passed over; nil: nothing.
	Before *source.Before
	// Until, if not nil, returns what lay there when the program was started again,
	// nil before that: nothing else is read then.
	Until func() *source.Before
	// Drain is closed when the program has ended and all is written.
	Drain <-chan struct{}
	// Clock is the time; the zero value is the machine's.
	Clock source.Clock
	// part: the metrics may be in other tables too; only a table with none of them
	// is told of.
	part bool
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
	cfg.Clock = cfg.Clock.OrReal()
	return &CSV{cfg: cfg}, nil
}

// Points implements collector.Source.
func (c *CSV) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		r, ok := newCSVRun(c.cfg, yield)
		if !ok {
			return
		}
		defer r.close()
		if note := c.cfg.Before.Note(); note != nil && !r.said.Tell(note) {
			return
		}
		source.Follow(ctx, c.cfg.Clock, c.cfg.Drain, r, yield)
	}
}

// csvRun is one run of a CSV's Points.
type csvRun struct {
	cfg    CSVConfig
	parser *parse.CSV
	yield  source.Yield
	said   source.Troubles
	buf    []byte
	series map[string]*csvSeries
	tables numbers[map[string]string] // by their first rows

	cur     *reading
	header  []byte // the first record as it was read, with its line end
	partial []byte // the record that has no end yet
	begin   int64  // where it begins
	cutting bool   // the rest of a record that is too long is being dropped
	passed  int64  // where what is passed over ends
	table   int    // the number of the table, -1 before its first row
	samples []parse.Sample
	now     time.Time // of the last read

	found  bool // there was a file at some time
	wanted bool // there was a wanted column at some time
}

// newCSVRun begins to read. ok is false when the consumer has had enough.
func newCSVRun(cfg CSVConfig, yield source.Yield) (r *csvRun, ok bool) {
	r = &csvRun{cfg: cfg, yield: yield, said: source.Troubles{Prefix: "file:" + cfg.Path, Yield: yield},
		buf: make([]byte, readSize), series: map[string]*csvSeries{}, table: -1}
	var err error
	if r.parser, err = parse.NewCSV(cfg.Metrics); err != nil {
		yield(collector.Point{}, err)
		return nil, false
	}
	r.tables.state = cfg.State
	err = r.tables.load()
	return r, err == nil || r.said.Tell(err)
}

// Poll implements source.Poller.
func (r *csvRun) Poll(ctx context.Context) (sawData, ok bool) {
	for ctx.Err() == nil {
		if r.cur == nil {
			f, err := open(r.cfg.Path)
			if errors.Is(err, fs.ErrNotExist) {
				return sawData, true
			}
			if err != nil {
				return sawData, r.said.Tell(err)
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
	n, err := r.cur.ReadAt(r.buf[:bound(r.cfg.Until, r.cur, len(r.buf))], r.cur.off)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, r.said.Tell(err)
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
		return false, r.said.Tell(err)
	}
	if info.Size() < r.cur.off || !r.intact() {
		r.restart()
		return info.Size() > 0, true
	}
	if now, err := os.Stat(r.cfg.Path); err != nil || os.SameFile(now, info) || now.Size() == 0 {
		return false, true
	}
	r.close()
	return true, true
}

// intact reports whether what was read is still there: all of the header, since
// a column may be added anywhere in it, and the bytes before the place of
// reading.
func (r *csvRun) intact() bool {
	header := make([]byte, len(r.header))
	n, _ := r.cur.ReadAt(header, 0) // a file that cannot be read does not hold it
	return bytes.Equal(header[:n], r.header) && r.cur.intact()
}

// restart begins the file anew.
func (r *csvRun) restart() {
	r.cur.begin(nil)
	r.parser.Reset()
	r.header, r.partial, r.begin, r.cutting, r.table = nil, nil, 0, false, -1
	for _, s := range r.series {
		s.again = 0
	}
	m, _ := r.cfg.Before.Of(r.cur.File)
	r.passed = m.Size // the header is needed, so these rows are parsed all the same
}

// feed takes bytes that follow those before.
func (r *csvRun) feed(b []byte) bool {
	r.partial = append(r.partial, b...)
	rest := r.partial
	drop := func(n int) { rest, r.begin = rest[n:], r.begin+int64(n) }
	for len(rest) > 0 {
		if r.cutting {
			end := bytes.IndexByte(rest, '\n')
			if r.cutting = end < 0; r.cutting {
				end = len(rest) - 1
			}
			drop(end + 1)
			continue
		}
		record, n := parse.CSVRecord(rest[:min(len(rest), maxLine)])
		if n == 0 && len(rest) < maxLine {
			break
		}
		if n == 0 {
			r.parser.Skip()
			if !r.said.Tell(fmt.Errorf("the record at byte %d is longer than %d bytes, perhaps for a quote that is not closed; it was passed over up to the next line after that", r.begin, maxLine)) {
				return false
			}
			drop(maxLine)
			r.cutting = true
			continue
		}
		if r.header == nil {
			r.header = bytes.Clone(rest[:n])
		}
		r.samples, _ = r.parser.Parse(r.samples[:0], record)
		if !r.row() {
			return false
		}
		drop(n)
	}
	r.partial = append(r.partial[:0], rest...)
	if len(rest) == 0 && cap(r.partial) > 2*readSize {
		r.partial = nil
	}
	return true
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
	row := r.parser.FirstRow()
	r.table = r.tables.find(func(known map[string]string) bool { return sameRow(known, row) })
	if r.table >= 0 {
		return true
	}
	var err error
	r.table, err = r.tables.add(row)
	return err == nil || r.said.Tell(err)
}

// sameRow reports whether two first rows may be of one table: they have equal
// cells, and no cell in which both have something differs.
func sameRow(a, b map[string]string) bool {
	same := false
	for name, x := range a {
		y := b[name]
		switch {
		case x == "" || y == "":
		case x == y || sameNumber(x, y):
			same = true
		default:
			return false
		}
	}
	return same
}

func sameNumber(x, y string) bool {
	v, errX := strconv.ParseFloat(x, 64)
	w, errY := strconv.ParseFloat(y, 64)
	return errX == nil && errY == nil && (v == w || v != v && w != w)
}

// Finish implements source.Poller.
func (r *csvRun) Finish() bool {
	if !r.found {
		return r.said.Tell(fmt.Errorf("%s was never written", r.cfg.Path))
	}
	if r.cur != nil && r.cfg.Before.Rewritten(r.cur.File) {
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

func (r *csvRun) close() {
	if r.cur != nil {
		r.cur.Close()
		r.cur = nil
	}
}

// csvSeries is the points of one column.
type csvSeries struct {
	source string
	next   int64 // Seq after the last that was yielded
	// Of the table that has it: the values that were yielded, those before next
	// since the file was begun anew, and how many of these were not yielded.
	read, again, late int
}

// take reports whether the value at a place is to be yielded, and counts it.
func (s *csvSeries) take(seq int64) bool {
	same := seq>>generationShift == s.next>>generationShift
	if seq < s.next {
		if same {
			s.again++
			s.late = max(s.late, s.again-s.read)
		}
		return false
	}
	if !same {
		s.read, s.again = 0, 0
	}
	s.read, s.again, s.next = s.read+1, s.again+1, seq+1
	return true
}
