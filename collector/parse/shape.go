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
	// table is what separates the cells of a table, 0 when it is none.
	table byte
}

// separators are what may separate the cells of a table; only commas are read.
const separators = ",;\t|"

// columnName is a cell of a header.
var columnName = regexp.MustCompile(`^\s*"?[A-Za-z_][\w /|.@-]*"?\s*$`)

// look takes in the next line.
func (s *shape) look(line []byte) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	switch {
	case len(line) == 0 || s.lines == 2:
		return
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
