package parse

import (
	"bytes"
	"regexp"
	"strconv"
)

// shape is what a text looks like, by its first two lines that are not empty.
type shape struct {
	lines int
	// spans: it begins with a bracket that stands alone, as JSON over several
	// lines does.
	spans bool
	// table is what separates the cells of a table, 0 when it is none.
	table byte

	header map[byte]int // cells by separator
}

// columnName is a cell of a header.
var columnName = regexp.MustCompile(`^\s*"?[A-Za-z_][\w /|.@-]*"?\s*$`)

// look takes in the next line.
func (s *shape) look(line []byte) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	if len(line) == 0 || s.lines == 2 {
		return
	}
	s.lines++
	if s.lines == 2 {
		for _, separator := range []byte(",;\t|") {
			if cells := bytes.Split(line, []byte{separator}); len(cells) > 1 && len(cells) == s.header[separator] && anyNumber(cells) {
				s.table = separator
				return
			}
		}
		return
	}
	s.spans = string(line) == "{" || string(line) == "[" || string(line) == "[{"
	s.header = map[byte]int{}
	for _, separator := range []byte(",;\t|") {
		cells := bytes.Split(line, []byte{separator})
		names := true
		for _, cell := range cells {
			names = names && columnName.Match(cell)
		}
		if names {
			s.header[separator] = len(cells)
		}
	}
}

func anyNumber(cells [][]byte) bool {
	for _, cell := range cells {
		// Decimal commas stand in tables that are separated by something else.
		number := bytes.ReplaceAll(bytes.Trim(bytes.TrimSpace(cell), `"`), []byte(","), []byte("."))
		if _, err := strconv.ParseFloat(string(number), 64); err == nil {
			return true
		}
	}
	return false
}

// Separator returns what separates the only column's name into several, when a
// header seems to have been split at the wrong character; else 0.
func Separator(columns []string) byte {
	if len(columns) != 1 {
		return 0
	}
	for _, separator := range []byte(";\t|") {
		if bytes.IndexByte([]byte(columns[0]), separator) >= 0 {
			return separator
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
