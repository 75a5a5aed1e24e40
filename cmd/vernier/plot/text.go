package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Style is how a chart is written as text.
type Style struct {
	// Width and Height of the whole, in characters.
	Width, Height int
	Color         bool
	// ASCII uses no other characters.
	ASCII bool
}

// The colours of the series, after those of Okabe and Ito, as far as a terminal has
// them. Shapes and names tell series apart without colour.
var colors = []string{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m"}

const (
	faint = "\x1b[2m"
	bold  = "\x1b[1m"
	reset = "\x1b[0m"
)

// cell is a character of the canvas: a mark, or dots of lines.
type cell struct {
	mark  rune
	dots  uint8
	color string
}

type canvas struct {
	width, height int
	cells         []cell
}

// braille are the bits of a character's dots, by column and row.
var braille = [2][4]uint8{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

func (c *canvas) at(x, y int) *cell { return &c.cells[y*c.width+x] }

// dot sets a dot; there are two by four in a character.
func (c *canvas) dot(x, y int, color string) {
	if x < 0 || y < 0 || x >= 2*c.width || y >= 4*c.height {
		return
	}
	cell := c.at(x/2, y/4)
	cell.dots |= braille[x%2][y%4]
	cell.color = color
}

func (c *canvas) line(x0, y0, x1, y1 int, color string) {
	steps := max(abs(x1-x0), abs(y1-y0), 1)
	for i := range steps + 1 {
		t := float64(i) / float64(steps)
		c.dot(x0+int(math.Round(t*float64(x1-x0))), y0+int(math.Round(t*float64(y1-y0))), color)
	}
}

func abs(n int) int { return max(n, -n) }

// Text is the chart as lines of at most the style's width.
func (c Chart) Text(s Style) []string {
	paint := func(code, text string) string {
		if !s.Color || text == "" {
			return text
		}
		return code + text + reset
	}
	lines := []string{paint(bold, runewidth.Truncate(c.Title, s.Width, "..."))}
	if c.Note != "" {
		lines = append(lines, runewidth.Truncate(c.Note, s.Width, "..."))
	}
	switch {
	case c.Empty():
		return append(lines, "  nothing to draw yet")
	case len(c.Bars) > 0:
		return append(lines, c.bars(s, paint)...)
	}
	x, y := c.scales()
	y = c.near(y)
	lines[0] = paint(bold, runewidth.Truncate(c.Title+c.outliers(y, s.ASCII), s.Width, "..."))
	labels := []string{short(y.value(0)), short(y.value(0.5)), short(y.value(1))}
	margin := 0
	for _, l := range labels {
		margin = max(margin, len(l))
	}
	grid := canvas{width: max(s.Width-margin-2, 10)}
	indent := strings.Repeat(" ", margin+2)
	high, low := c.ticks(x, grid.width, func(t Tick) string { return t.High }), c.ticks(x, grid.width, func(t Tick) string { return t.Low })
	if high != "" {
		lines = append(lines, indent+high)
	}
	below := []string{c.ticks(x, grid.width, func(t Tick) string { return t.Label }), c.legend(s, paint)}
	if low != "" {
		below = append([]string{low}, below...)
	}
	grid.height = max(s.Height-len(lines)-1-len(below), 4)
	grid.cells = make([]cell, grid.width*grid.height)
	c.drawAll(&grid, s, x, y)
	bar, corner, dash := "│", "└", "─"
	if s.ASCII {
		bar, corner, dash = "|", "+", "-"
	}
	for row := range grid.height {
		label := ""
		switch row {
		case 0:
			label = labels[2]
		case grid.height / 2:
			label = labels[1]
		case grid.height - 1:
			label = labels[0]
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%*s %s%s", margin, label, bar, grid.row(row, s)), " "))
	}
	lines = append(lines, strings.Repeat(" ", margin+1)+corner+strings.Repeat(dash, grid.width))
	for _, line := range below {
		lines = append(lines, strings.TrimRight(indent+line, " "))
	}
	return lines
}

// nameEnds writes the names of lines where they end, the first ones over the others:
// without colours nothing else tells them apart.
func (c Chart) nameEnds(grid *canvas, x, y scale) {
	for _, s := range slices.Backward(c.Series) {
		for i := range slices.Backward(s.X) {
			if !c.drawn(s.X[i], s.Y[i]) {
				continue
			}
			column := int(math.Round(x.at(s.X[i]) * float64(grid.width-1)))
			row := int(math.Round((1-min(max(y.at(s.Y[i]), 0), 1))*float64(4*grid.height-1))) / 4
			for k, r := range s.Name[:min(len(s.Name), grid.width)] {
				grid.at(min(column, grid.width-len(s.Name))+k, row).mark = r
			}
			break
		}
	}
}

func (c Chart) color(i int) string {
	if c.Series[i].Faint {
		return faint
	}
	n := 0
	for _, s := range c.Series[:i] {
		if !s.Faint {
			n++
		}
	}
	return colors[n%len(colors)]
}

// drawAll draws the faint series first, and names lines where colours do not.
func (c Chart) drawAll(grid *canvas, s Style, x, y scale) {
	for _, behind := range []bool{true, false} {
		for i, series := range c.Series {
			if series.Faint && series.Shape == Line && !s.Color {
				continue // nothing would tell it from the others
			}
			if series.Faint == behind {
				c.draw(grid, series, c.color(i), x, y, s.ASCII)
			}
		}
	}
	if c.Each != "" && !s.Color {
		c.nameEnds(grid, x, y)
	}
}

func (c Chart) draw(grid *canvas, s Series, color string, x, y scale, ascii bool) {
	wide, high := float64(2*grid.width-1), float64(4*grid.height-1)
	lastX, lastY, have := 0, 0, false
	for i := range s.X {
		if !c.drawn(s.X[i], s.Y[i]) {
			have = false
			continue
		}
		share := y.at(s.Y[i])
		px, py := int(math.Round(x.at(s.X[i])*wide)), int(math.Round((1-min(max(share, 0), 1))*high))
		if s.Shape != Line {
			cell := grid.at(px/2, py/4)
			cell.mark, cell.color = mark(s, ascii), color
			if above := share > 1; above || share < 0 {
				cell.mark = arrow(above, ascii)
			}
			continue
		}
		if !have {
			lastX, lastY = px, py
		}
		grid.line(lastX, lastY, px, py, color)
		lastX, lastY, have = px, py, true
	}
}

// outliers is " (2 ▲ up to 1e+06)", where points are beyond the scale.
func (c Chart) outliers(y scale, ascii bool) string {
	var parts []string
	if n, most := c.beyond(y, true); n > 0 {
		parts = append(parts, fmt.Sprintf("%d %c up to %s", n, arrow(true, ascii), short(most)))
	}
	if n, least := c.beyond(y, false); n > 0 {
		parts = append(parts, fmt.Sprintf("%d %c down to %s", n, arrow(false, ascii), short(least)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// arrow is the mark of a point that is beyond the scale.
func arrow(up, ascii bool) rune {
	signs := []rune("▼▲")
	if ascii {
		signs = []rune("v^")
	}
	if up {
		return signs[1]
	}
	return signs[0]
}

func mark(s Series, ascii bool) rune {
	switch {
	case s.Shape == Stars && ascii:
		return '*'
	case s.Shape == Stars:
		return '★'
	case s.Faint && ascii:
		return '.'
	case s.Faint:
		return '·'
	case ascii:
		return 'o'
	}
	return '•'
}

func (c *canvas) row(y int, s Style) string {
	var b strings.Builder
	for x := range c.width {
		cell := c.at(x, y)
		r := cell.mark
		switch {
		case r != 0:
		case cell.dots == 0:
			r = ' '
		case s.ASCII:
			r = '.'
		default:
			r = 0x2800 + rune(cell.dots)
		}
		if s.Color && r != ' ' {
			b.WriteString(cell.color + string(r) + reset)
		} else {
			b.WriteRune(r)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// ticks are labels of the x axis, at their places as far as there is room.
func (c Chart) ticks(x scale, width int, label func(Tick) string) string {
	ticks := c.X.Ticks
	if len(ticks) == 0 {
		for i := range 5 {
			v := x.value(float64(i) / 4)
			if c.X.Whole {
				v = math.Round(v)
			}
			ticks = append(ticks, Tick{At: v, Label: short(v)})
		}
	}
	line, end := "", -1
	for i, t := range ticks {
		text := label(t)
		if text == "" {
			continue
		}
		size := runewidth.StringWidth(text)
		at := int(x.at(t.At)*float64(width-1)) - size/2
		at = max(min(at, width-size), 0)
		if i == len(ticks)-1 && len(ticks) > 1 {
			at = max(width-size, 0)
		}
		if at <= end {
			continue
		}
		line += strings.Repeat(" ", at-runewidth.StringWidth(line)) + text
		end = at + size
	}
	return line
}

// legend names the axes and the series.
func (c Chart) legend(s Style, paint func(code, text string) string) string {
	var parts []string
	if c.X.Label != "" {
		parts = append(parts, "x: "+c.X.Label)
	}
	if c.Y.Label != "" {
		parts = append(parts, "y: "+c.Y.Label)
	}
	named := len(parts)
	room := s.Width - 12 - runewidth.StringWidth(strings.Join(parts, "   "))
	for i, series := range c.Series {
		if series.Name == "" {
			continue
		}
		sign := "─"
		if s.ASCII {
			sign = "-"
		}
		if series.Shape != Line {
			sign = string(mark(series, s.ASCII))
		}
		text := sign + " " + series.Name
		if c.Each != "" && len(parts) == named {
			text = c.Each + ": " + text
		}
		if room -= runewidth.StringWidth(text) + 3; room < 0 {
			break
		}
		parts = append(parts, paint(c.color(i), text))
	}
	return strings.Join(parts, "   ")
}

func (c Chart) bars(s Style, paint func(code, text string) string) (lines []string) {
	label := 0
	for _, b := range c.Bars {
		label = max(label, runewidth.StringWidth(b.Label))
	}
	label = min(label, s.Width/2)
	full := "█"
	if s.ASCII {
		full = "#"
	}
	for _, b := range c.Bars {
		name := runewidth.FillRight(runewidth.Truncate(b.Label, label, "..."), label)
		length := int(math.Round(b.Share * float64(s.Width-label-9)))
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %5.1f%% %s", name, 100*b.Share, paint(colors[0], strings.Repeat(full, max(length, 0)))), " "))
	}
	return lines
}
