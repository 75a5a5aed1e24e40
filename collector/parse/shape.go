package parse

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// shape is what a text looks like.
type shape struct {
	header []byte // the first line, until the second
	lines  int    // that are not empty, up to two
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

// maxHeader bounds the header of a table that is separated by blanks, in bytes.
const maxHeader = 1024

var (
	// columnName is a cell of a header.
	columnName   = regexp.MustCompile(`^\s*"?[A-Za-z_][\w /|.@-]*"?\s*$`)
	beginsNumber = regexp.MustCompile(`^[-+]?\.?\d`)
)

// look takes in the next line. It returns the columns of a table that is separated
// by blanks, whose header begins with an epoch, when the line is its first row.
func (s *shape) look(line []byte) (columns []string) {
	if s.lines == 0 {
		s.utf16 = len(line) > 3 && bytes.Count(line, []byte{0})*5 >= len(line)*2
	}
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	cells, n := strings.Fields(string(line[:min(len(line), maxHeader)])), len(s.columns)
	if n > 0 && len(cells) >= n && beginsNumber.MatchString(cells[0]) && beginsNumber.MatchString(cells[n-1]) {
		columns = s.columns
	}
	if s.columns = nil; len(cells) > 2 && strings.EqualFold(cells[0], "epoch") {
		s.columns = cells
	}
	switch {
	case len(line) == 0 || s.lines == 2:
		return columns
	case s.lines == 0:
		s.header = bytes.Clone(line)
		s.spans = string(line) == "{" || string(line) == "[" || string(line) == "[{"
	default:
		for i := len(separators) - 1; i >= 0; i-- {
			if isTable(s.header, line, separators[i:i+1]) {
				s.table = separators[i]
			}
		}
		s.header = nil
	}
	s.lines++
	return columns
}

// isTable reports whether two lines are names and as many cells, with a number
// among them.
func isTable(header, row []byte, separator string) (number bool) {
	names, cells := strings.Split(string(header), separator), strings.Split(string(row), separator)
	if len(names) < 2 || len(names) != len(cells) {
		return false
	}
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
