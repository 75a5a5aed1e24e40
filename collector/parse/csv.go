package parse

import (
	"bytes"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/collector"
)

// CSV reads the records of one table of comma-separated values (RFC 4180). The first
// record names the columns; a metric is the column of exactly its name, of two with one
// name the last. An empty cell is no value, nor is one that says so (see isAbsent);
// another cell that is not a number is kept as text. Spaces around names and cells do
// not count. A record may have fewer cells than there are columns, or more. A record
// without any number that names a wanted column is a header too: programs that go on
// with a table write another, and some write a line of something else first. The first
// 65,536 columns are read.
//
// The step of a record is its cell in the column global_step, step, iteration
// (or iter) or epoch, the first of these that is not empty. The time is its cell
// in timestamp, or else in time or ts if that has the form of a time.
type CSV struct {
	columns []string // nil before the header
	rows    int64
	first   map[string]string
	record  record
	cells   [][]byte // of the row at hand
}

var _ Line = (*CSV)(nil)

const (
	// maxSign and maxSignCell bound what FirstRow tells, in cells and bytes.
	maxSign     = 256
	maxSignCell = 64
	// maxCells bounds the columns that are read.
	maxCells = 1 << 16
)

// NewCSV returns a parser of the named metrics.
func NewCSV(metrics []string) *CSV { return &CSV{record: newRecord(metrics)} }

// Reset implements Line.
func (c *CSV) Reset() {
	c.columns, c.rows, c.first = nil, 0, nil
	c.record.Reset()
}

// Rows returns how many records have been read that were no header.
func (c *CSV) Rows() int64 { return c.rows }

// Columns returns the names of the columns, none before the header.
func (c *CSV) Columns() []string { return c.columns }

// Wanted reports whether there is a column of a wanted metric.
func (c *CSV) Wanted() bool {
	return slices.ContainsFunc(c.columns, func(name string) bool { _, ok := c.record.index[name]; return ok })
}

// FirstRow returns the cells of the first row by column, shortened: what tells
// this table from another. It is nil before there is one.
func (c *CSV) FirstRow() map[string]string { return c.first }

// Skip counts a row that was not read.
func (c *CSV) Skip() { c.rows++ }

// Parse implements Line; a line is a record, as CSVRecord cuts it. An empty one
// is passed over.
func (c *CSV) Parse(dst []collector.Point, record []byte) ([]collector.Point, error) {
	c.split(record)
	return c.row(dst), nil
}

// ParseCut is Parse for a last record without a line end. Where it has fewer
// cells than there are columns, it was cut off in its last cell, which is left
// out.
func (c *CSV) ParseCut(dst []collector.Point, record []byte) ([]collector.Point, error) {
	if c.split(record); 0 < len(c.cells) && len(c.cells) < len(c.columns) {
		c.cells = c.cells[:len(c.cells)-1]
	}
	return c.row(dst), nil
}

// split cuts a record into cells, of which it keeps the first maxCells.
func (c *CSV) split(record []byte) {
	c.cells = c.cells[:0]
	for at := 0; len(record) > 0 && at <= len(record) && len(c.cells) < maxCells; at++ {
		n := cellEnd(record[at:])
		cell := record[at : at+n]
		if len(cell) > 1 && cell[0] == '"' && cell[n-1] == '"' {
			cell = bytes.ReplaceAll(cell[1:n-1], []byte(`""`), []byte(`"`))
		}
		c.cells = append(c.cells, bytes.TrimSpace(cell))
		at += n
	}
}

// row reads the cells.
func (c *CSV) row(dst []collector.Point) []collector.Point {
	if len(c.cells) == 0 {
		return dst
	}
	if c.columns == nil || c.isHeader() {
		c.header()
		return dst
	}
	c.record.begin()
	for i, cell := range c.cells[:min(len(c.cells), len(c.columns))] {
		if isAbsent(cell) {
			continue
		}
		name := c.columns[i]
		if k, ok := c.record.index[name]; ok {
			c.record.found[k] = wholeSample(name, cell)
		}
		c.record.key(name, string(cell))
	}
	if c.rows == 0 {
		c.sign()
	}
	c.rows++
	return c.record.end(dst)
}

// header takes the names of the columns.
func (c *CSV) header() {
	c.columns = make([]string, len(c.cells))
	for i, cell := range c.cells {
		c.columns[i] = string(cell)
	}
	c.columns[0] = strings.TrimSpace(strings.TrimPrefix(c.columns[0], string(byteOrderMark)))
}

// isHeader reports whether the cells are the names of columns: none is a number,
// a wanted name is among them, and a wanted column has text, or there was none yet: the
// first line may be something else, as in the monitor.csv of Stable-Baselines3.
func (c *CSV) isHeader() bool {
	named, odd := false, false
	for i, cell := range c.cells {
		if _, isNumber := wholeNumber(cell); isNumber {
			return false
		}
		_, wanted := c.record.index[string(cell)]
		named = named || wanted
		if i < len(c.columns) && len(cell) > 0 {
			_, wanted := c.record.index[c.columns[i]]
			odd = odd || wanted || IsStep(c.columns[i])
		}
	}
	return named && (odd || !c.Wanted())
}

// sign keeps the cells of the first row.
func (c *CSV) sign() {
	c.first = map[string]string{}
	for i, cell := range c.cells[:min(len(c.cells), len(c.columns), maxSign)] {
		if isAbsent(cell) {
			cell = nil // it may be filled in later
		}
		c.first[c.columns[i]] = strings.ToValidUTF8(string(cell[:min(len(cell), maxSignCell)]), "?")
	}
}

// cellEnd returns where the cell ends that b begins with: at a comma, at a line
// feed, or at the end of b. Quotes count only where they begin the cell.
func cellEnd(b []byte) int {
	quotes := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case i == 0 && c == '"':
			quotes = true
		case quotes && c == '"' && i+1 < len(b) && b[i+1] == '"':
			i++ // two of them stand for one
		case quotes:
			quotes = c != '"'
		case c == ',' || c == '\n':
			return i
		}
	}
	return len(b)
}

// CSVRecord cuts the first record off b and returns it without its line end,
// and its length with it. n is 0 when b does not hold all of it. A line feed
// within quotes is part of a cell.
func CSVRecord(b []byte) (record []byte, n int) {
	for at := 0; at < len(b); at++ {
		at += cellEnd(b[at:])
		if at < len(b) && b[at] == '\n' {
			return bytes.TrimSuffix(b[:at], []byte("\r")), at + 1
		}
	}
	return nil, 0
}
