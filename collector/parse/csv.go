package parse

import (
	"bytes"
	"slices"
	"strings"
	"time"
)

// CSV reads the records of one table of comma-separated values (RFC 4180). The
// first record names the columns; a metric is the column of exactly its name,
// of two with one name the last. An empty cell is no value, a cell that is not a
// number is kept as text. Spaces around names and cells do not count. A record
// may have fewer cells than there are columns, or more. A record without any
// number that names a wanted column is a header too: programs that go on with a
// table write another. The first 65,536 columns are read.
//
// The step of a record is its cell in the column global_step, step, iteration
// (or iter) or epoch, the first of these that is not empty. The time is its cell
// in timestamp, or else in time or ts if that has the form of a time.
type CSV struct {
	names   []*metricName
	columns []column // nil before the header
	rows    int64
	first   map[string]string
	picks   picks
	cells   []cell
}

var (
	_ Line     = (*CSV)(nil)
	_ Resetter = (*CSV)(nil)
)

// column is what a column means.
type column struct {
	name   string
	metric *metricName
	rank   int  // of a step
	stamp  bool // may hold a time
}

type cell struct {
	text []byte
	at   int
}

const (
	// maxSign and maxSignCell bound what FirstRow tells, in cells and bytes.
	maxSign     = 256
	maxSignCell = 64
	// maxCells bounds the columns that are read.
	maxCells = 1 << 16
)

// NewCSV returns a parser of the named metrics.
func NewCSV(metrics []string) (*CSV, error) {
	names, err := wantedNames(metrics)
	if err != nil {
		return nil, err
	}
	return &CSV{names: names}, nil
}

// Reset implements Resetter.
func (c *CSV) Reset() { c.columns, c.rows, c.first = nil, 0, nil }

// Rows returns how many records have been read that were no header.
func (c *CSV) Rows() int64 { return c.rows }

// Columns returns the names of the columns, none before the header.
func (c *CSV) Columns() []string {
	var names []string
	for _, column := range c.columns {
		names = append(names, column.name)
	}
	return names
}

// Wanted reports whether there is a column of a wanted metric.
func (c *CSV) Wanted() bool {
	return slices.ContainsFunc(c.columns, func(c column) bool { return c.metric != nil })
}

// FirstRow returns the cells of the first row by column, shortened: what tells
// this table from another. It is nil before there is one.
func (c *CSV) FirstRow() map[string]string { return c.first }

// Skip counts a row that was not read.
func (c *CSV) Skip() { c.rows++ }

// Parse implements Line; a line is a record, as CSVRecord cuts it. An empty one
// is passed over.
func (c *CSV) Parse(dst []Sample, record []byte) ([]Sample, error) {
	if len(record) == 0 {
		return dst, nil
	}
	c.split(record)
	return c.record(dst), nil
}

// ParseCut is Parse for a last record without a line end. Where it has fewer
// cells than there are columns, it was cut off in its last cell, which is left
// out.
func (c *CSV) ParseCut(dst []Sample, record []byte) ([]Sample, error) {
	if len(record) == 0 {
		return dst, nil
	}
	c.split(record)
	if len(c.cells) < len(c.columns) {
		c.cells = c.cells[:len(c.cells)-1]
	}
	return c.record(dst), nil
}

// record reads the cells.
func (c *CSV) record(dst []Sample) []Sample {
	if c.columns == nil {
		c.header()
		return dst
	}
	c.picks.begin(dst)
	steps, at := newStepFinder(), stamp{}
	odd := false // a cell that should hold a number does not
	for i := range c.cells[:min(len(c.cells), len(c.columns))] {
		column, text := &c.columns[i], c.cells[i].text
		if len(text) == 0 {
			continue
		}
		if column.metric != nil {
			odd = !c.add(column.metric, c.cells[i]) || odd
		}
		if column.rank != noRank {
			step, n := scanStep(text)
			if n > 0 && n == len(text) {
				steps.set(column.rank, step)
			} else {
				odd = true
			}
		}
		if column.stamp {
			at.offer([]byte(column.name), text)
		}
	}
	if odd && c.isHeader() {
		c.picks.end(NoStep, time.Time{}) // a name is no value
		c.header()
		return dst
	}
	if c.rows == 0 {
		c.sign()
	}
	c.rows++
	return c.picks.end(steps.step, at.at)
}

// add takes the cell of a metric and reports whether it is a number.
func (c *CSV) add(m *metricName, cell cell) bool {
	v, isNumber := wholeNumber(cell.text)
	if isNumber {
		c.picks.number(m, cell.text, v, cell.at)
	} else {
		c.picks.text(m, cell.text, cell.at)
	}
	return isNumber
}

// header takes the names of the columns.
func (c *CSV) header() {
	c.columns = make([]column, 0, len(c.cells))
	for i, cell := range c.cells {
		name := cell.text
		if i == 0 {
			name = bytes.TrimPrefix(name, []byte("\xef\xbb\xbf")) // a byte order mark
		}
		col := column{name: string(name), rank: rankOf(name), metric: c.metric(name)}
		col.stamp = isTime(col.name)
		c.columns = append(c.columns, col)
	}
}

func (c *CSV) metric(name []byte) *metricName {
	for _, m := range c.names {
		if m.name == string(name) {
			return m
		}
	}
	return nil
}

// isHeader reports whether the cells are the names of columns.
func (c *CSV) isHeader() bool {
	named := false
	for _, cell := range c.cells {
		if _, isNumber := wholeNumber(cell.text); isNumber {
			return false
		}
		named = named || c.metric(cell.text) != nil
	}
	return named
}

// sign keeps the cells of the first row.
func (c *CSV) sign() {
	c.first = map[string]string{}
	for i, cell := range c.cells[:min(len(c.cells), len(c.columns), maxSign)] {
		c.first[c.columns[i].name] = strings.ToValidUTF8(string(cell.text[:min(len(cell.text), maxSignCell)]), "?")
	}
}

// split cuts a record into cells, of which it keeps the first maxCells.
func (c *CSV) split(record []byte) {
	c.cells = c.cells[:0]
	for at := 0; ; {
		n := cellEnd(record[at:], 0)
		text := record[at : at+n]
		if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
			text = text[1 : len(text)-1]
			if bytes.IndexByte(text, '"') >= 0 {
				text = bytes.ReplaceAll(text, []byte(`""`), []byte(`"`))
			}
		}
		c.cells = append(c.cells, cell{bytes.TrimSpace(text), at})
		if at += n + 1; at > len(record) || len(c.cells) == maxCells {
			return
		}
	}
}

// cellEnd returns where the cell ends that b begins with: at a comma, at the
// byte end, or at the end of b. Quotes count only where they begin the cell.
func cellEnd(b []byte, end byte) int {
	i := 0
	if len(b) > 0 && b[0] == '"' {
		if i = quotedEnd(b); i < 0 {
			return len(b)
		}
	}
	for ; i < len(b); i++ {
		if b[i] == ',' || end != 0 && b[i] == end {
			return i
		}
	}
	return len(b)
}

// quotedEnd returns the length of the quoted text that b begins with, in which
// two quotes stand for one; -1 when it has no end.
func quotedEnd(b []byte) int {
	for i := 1; ; i += 2 {
		k := bytes.IndexByte(b[min(i, len(b)):], '"')
		if k < 0 {
			return -1
		}
		i += k
		if i+1 == len(b) || b[i+1] != '"' {
			return i + 1
		}
	}
}

// CSVRecord cuts the first record off b and returns it without its line end,
// and its length with it. n is 0 when b does not hold all of it. A line feed
// within quotes is part of a cell.
func CSVRecord(b []byte) (record []byte, n int) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return nil, 0
	}
	if bytes.IndexByte(b[:end], '"') >= 0 {
		if end = recordEnd(b); end < 0 {
			return nil, 0
		}
	}
	record = b[:end]
	if end > 0 && record[end-1] == '\r' {
		record = record[:end-1]
	}
	return record, end + 1
}

// recordEnd returns the place of the line feed that ends the record, or -1.
func recordEnd(b []byte) int {
	for at := 0; ; {
		if at < len(b) && b[at] == '"' && quotedEnd(b[at:]) < 0 {
			return -1
		}
		at += cellEnd(b[at:], '\n')
		if at >= len(b) {
			return -1
		}
		if b[at] == '\n' {
			return at
		}
		at++
	}
}
