package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table writes aligned columns, as kubectl does: two or three spaces between
// them, no lines.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer, noHeader bool) error {
	for _, line := range t.lines(noHeader) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// lines are the rows, padded; the last column is not padded.
func (t *table) lines(noHeader bool) []string {
	rows := t.rows
	if !noHeader && t.header != nil {
		rows = append([][]string{t.header}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
			}
		}
		lines[r] = strings.TrimRight(b.String(), " ")
	}
	return lines
}
