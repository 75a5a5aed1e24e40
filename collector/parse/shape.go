package parse

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// shape is what a text looks like, by its first two lines that are not empty.
type shape struct {
	header []byte // the first line
	lines  int
	// spans: it begins with a bracket that stands alone, as JSON over several
	// lines does.
	spans bool
	// utf16: each second byte of its first line is zero.
	utf16 bool
	// table is what separates the cells of a table, 0 when it is none.
	table byte
	// columns are those of a line that may be the header of a table that is
	// separated by blanks, as fastai and Ultralytics print it.
	columns []string
}

// separators are what may separate the cells of a table; only commas are read.
const separators = ",;\t|"

// columnName is a cell of a header.
var columnName = regexp.MustCompile(`^\s*"?[A-Za-z_][\w /|.@-]*"?\s*$`)

// look takes in the next line. It returns the columns of a table that is separated
// by blanks when the line is its first row.
func (s *shape) look(line []byte) (columns []string) {
	if s.lines == 0 {
		s.utf16 = len(line) > 3 && bytes.Count(line, []byte{0})*5 >= len(line)*2
	}
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	columns = s.blanks(line)
	if len(line) == 0 || s.lines == 2 {
		return columns
	}
	if s.lines++; s.lines == 1 {
		s.header = bytes.Clone(line)
		s.spans = string(line) == "{" || string(line) == "[" || string(line) == "[{"
		return columns
	}
	for i := range len(separators) {
		if isTable(s.header, line, separators[i:i+1]) {
			s.table = separators[i]
			break
		}
	}
	s.header = nil
	return columns
}

// maxHeader bounds the header of a table that is separated by blanks, in bytes.
const maxHeader = 1024

// blanks looks for a header that begins with an epoch, and returns it with the row
// of numbers after it.
func (s *shape) blanks(line []byte) (columns []string) {
	cells := strings.Fields(string(line[:min(len(line), maxHeader)]))
	header := s.columns
	s.columns = nil
	switch n := len(header); {
	case len(cells) > 2 && strings.EqualFold(cells[0], "epoch"):
		s.columns = cells
	case n > 0 && len(cells) >= n && beginsNumber.MatchString(cells[0]) && beginsNumber.MatchString(cells[n-1]):
		return header
	}
	return nil
}

var beginsNumber = regexp.MustCompile(`^[-+]?\.?\d`)

// isTable reports whether two lines are names and as many cells, with a number
// among them.
func isTable(header, row []byte, separator string) bool {
	names, cells := strings.Split(string(header), separator), strings.Split(string(row), separator)
	if len(names) < 2 || len(names) != len(cells) {
		return false
	}
	number := false
	for i, name := range names {
		if !columnName.MatchString(name) {
			return false
		}
		// Decimal commas stand in tables that are separated by something else.
		cell := strings.ReplaceAll(strings.Trim(strings.TrimSpace(cells[i]), `"`), ",", ".")
		_, err := strconv.ParseFloat(cell, 64)
		number = number || err == nil
	}
	return number
}

// Separator returns what separates the only column's name into several, when a
// header seems to have been split at the wrong character; else 0.
func Separator(columns []string) byte {
	if len(columns) == 1 {
		if i := strings.IndexAny(columns[0], separators[1:]); i >= 0 {
			return columns[0][i]
		}
	}
	return 0
}

func separatorName(c byte) string {
	if c == '\t' {
		return "tabs"
	}
	return string(c)
}

// NotCommas says that a table is not separated by commas.
func NotCommas(separator byte) string {
	return "the table is separated by " + separatorName(separator) + ": only commas are read"
}
