package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// table writes aligned columns the way kubectl does: three spaces between them
// and no lines.
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

// draw makes each row of a table of trials a line of a terminal. Where only ASCII is
// certain to be seen, the signs before the states are left out.
func (t *table) draw(width int, ascii bool) {
	if !ascii {
		t.fit(width, 2)
		return
	}
	state := slices.Index(t.header, "STATE")
	for _, row := range t.rows {
		if sign, word, found := strings.Cut(row[state], " "); found && utf8.RuneCountInString(sign) == 1 {
			row[state] = word
		}
	}
	t.fit(width, 2)
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(cell, ellipsis, "~")
		}
	}
}

// fit clips the cells of the widest columns, but for the first ones that are to be
// kept, as far as a row is wider than width.
func (t *table) fit(width, kept int) {
	widths := make([]int, len(t.header))
	rows := append([][]string{t.header}, t.rows...)
	sum := -columnGap
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], runewidth.StringWidth(oneLine(row[i])))
		}
		sum += widths[i] + columnGap
	}
	for flexible := widths[kept:]; sum > width; sum-- {
		widest := slices.Max(flexible)
		if widest <= narrowest {
			break
		}
		flexible[slices.Index(flexible, widest)]--
	}
	for r, row := range rows {
		rows[r] = slices.Clone(row)
		for i, cell := range row {
			rows[r][i] = clip(cell, widths[i])
		}
	}
	t.header, t.rows = rows[0], rows[1:]
}

const (
	columnGap = 3
	narrowest = 8 // what fit leaves of a column
)

func (t *table) lines(noHeader bool) []string {
	rows := t.rows
	if !noHeader && t.header != nil {
		rows = append([][]string{t.header}, rows...)
	}
	var widths []int
	rows = slices.Clone(rows)
	for r, row := range rows {
		rows[r] = slices.Clone(row)
		for i, cell := range row {
			rows[r][i] = oneLine(cell)
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(runewidth.FillRight(cell, widths[i]+columnGap))
		}
		lines[r] = strings.TrimRight(line.String(), " ")
	}
	return lines
}
