package file

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/parse"
	"github.com/vernier-ml/vernier/collector/source"
)

// newTable returns a source of the named columns of a table of comma-separated
// values, to which a program appends rows, and which it may write anew: Lightning's
// CSVLogger rewrites all of it in place with a new header when a metric appears.
// Whenever what was read is not there any more, the file is read from its
// beginning; a row that was read is not yielded again.
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
func newTable(cfg Config) collector.Source {
	return cfg.polled("file:"+cfg.Path, func(said *source.Troubles) source.Poller {
		if f := followTable(cfg, false, said); f != nil {
			return f
		}
		return nil
	})
}

// followTable begins to read a table; nil when the consumer has had enough. part:
// the metrics may be in other tables too, and only a table with none of them is
// told of.
func followTable(cfg Config, part bool, said *source.Troubles) *follower {
	t := &csvFile{cfg: cfg, part: part, parser: parse.NewCSV(cfg.Metrics), said: said, series: map[string]*csvSeries{}}
	t.tables.state = cfg.State
	if err := t.tables.load(); err != nil && !said.Tell(err) {
		return nil
	}
	return newFollower(cfg, said, t, t.next)
}

// maxHeader bounds how much of a header is compared to notice a new column.
const maxHeader = 64 << 10

// csvFile is the rows of a file.
type csvFile struct {
	cfg    Config
	part   bool
	parser *parse.CSV
	said   *source.Troubles
	series map[string]*csvSeries
	tables numbers[map[string]string] // by their first rows

	partial []byte // the record that has no end yet
	start   int64  // where it begins
	cutting bool   // the rest of a record that is too long is being dropped
	passed  int64  // where what is passed over ends
	table   int    // the number of the table, -1 before its first row
	samples []collector.Point
	wanted  bool // there was a wanted column at some time
}

var _ content = (*csvFile)(nil)

func (r *csvFile) next(cur *reading) ([]*reading, error) {
	if cur == nil {
		return first(r.cfg.Path)
	}
	return successors(r.cfg.Path, cur, func(*reading) bool { return false }), nil
}

func (r *csvFile) begin(f *reading) bool {
	f.maxHead = maxHeader // a column may be added anywhere in it
	r.parser.Reset()
	r.partial, r.start, r.cutting, r.table = nil, 0, false, -1
	for _, s := range r.series {
		s.again = 0
	}
	m, _ := r.cfg.Before.Of(f.File)
	r.passed = m.Size // the header is needed, so these rows are parsed all the same
	return true
}

func (r *csvFile) feed(_ int64, b []byte) bool {
	r.partial = append(r.partial, b...)
	rest := r.partial
	drop := func(n int) { rest, r.start = rest[n:], r.start+int64(n) }
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
			if !r.said.Tell(fmt.Errorf("the record at byte %d is longer than %d bytes, perhaps for a quote that is not closed; it was passed over up to the next line after that", r.start, maxLine)) {
				return false
			}
			drop(maxLine)
			r.cutting = true
			continue
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
func (r *csvFile) row() bool {
	r.wanted = r.wanted || r.parser.Wanted()
	if len(r.samples) == 0 || r.start < r.passed {
		return true
	}
	if r.table < 0 && !r.identify() {
		return false
	}
	seq := int64(r.table)<<generationShift + r.parser.Rows() - 1
	for _, p := range r.samples {
		series := r.series[p.Metric]
		if series == nil {
			series = &csvSeries{source: "file:" + r.cfg.Path + "#" + p.Metric}
			r.series[p.Metric] = series
		}
		if !series.take(seq) {
			continue
		}
		p.Source, p.Seq = series.source, seq
		if p.Time.IsZero() {
			p.Time = r.cfg.Clock.Stamp()
		}
		if !r.said.Yield(p, nil) {
			return false
		}
	}
	return true
}

// identify makes sure that the table has its number before anything of it is
// yielded.
func (r *csvFile) identify() bool {
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

// left has nothing to do: a record without an end is not whole.
func (r *csvFile) left() bool { return true }

func (r *csvFile) nothing() error { return neverWritten(r.cfg.Path) }

func (r *csvFile) finish() bool {
	if len(r.partial) > 0 && !r.cutting {
		if bytes.IndexByte(r.partial, '\n') >= 0 && !r.said.Tell(fmt.Errorf("the record at byte %d has a quote that is not closed: the rows after it are not read", r.start)) {
			return false
		}
		r.samples, _ = r.parser.ParseCut(r.samples[:0], bytes.TrimSuffix(r.partial, []byte("\r")))
		if !r.row() {
			return false
		}
	}
	return r.late() && r.missing()
}

// late says how many values came too late.
func (r *csvFile) late() bool {
	var said []string
	for _, m := range r.cfg.Metrics {
		if s := r.series[m]; s != nil && s.late > 0 {
			said = append(said, fmt.Sprintf("%d of %s", s.late, m))
			s.late = 0 // a metric may be asked for twice
		}
	}
	return len(said) == 0 || r.said.Tell(fmt.Errorf(
		"cells that were filled after a later row of their column had been read are not counted: %s: write a row when all of it is known", strings.Join(said, ", ")))
}

// missing says which metrics have no column, or a column without a value.
func (r *csvFile) missing() bool {
	columns := r.parser.Columns()
	if columns == nil {
		return r.wanted || r.said.Tell(errors.New("the table has no header"))
	}
	isColumn := func(m string) bool { return slices.Contains(columns, m) }
	missing := source.NotFound(r.cfg.Metrics, func(m string) bool { return r.series[m] != nil || isColumn(m) })
	empty := source.NotFound(r.cfg.Metrics, func(m string) bool { return r.series[m] != nil || !isColumn(m) })
	if r.part && len(missing) < len(r.cfg.Metrics) {
		return true // another table may have it
	}
	var said []string
	if len(empty) > 0 {
		said = append(said, "the table has no value of "+strings.Join(empty, ", "))
	}
	if separator := parse.Separator(columns); separator != 0 && len(missing) > 0 {
		said = append(said, parse.NotCommas(separator))
	}
	if len(missing) > 0 {
		said = append(said, parse.NotFound(missing, columns))
	}
	if len(said) == 0 {
		return true
	}
	return r.said.Yield(collector.Point{}, &source.MissingError{
		Metrics: append(missing, empty...), Text: "file:" + r.cfg.Path + ": " + strings.Join(said, "; ")})
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
