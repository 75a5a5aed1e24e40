package report

import (
	"fmt"
	"html"
	"math"
	"os"
	"slices"
	"strings"
)

// colours are those of Okabe and Ito, which the colour-blind can tell apart, and
// some more.
var colours = []string{"#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00", "#0072b2", "#cc79a7", "#999933", "#882255", "#44aa99", "#777777", "#aa4499"}

const (
	width, height           = 760, 400
	left, right, top, under = 52, 190, 16, 44
)

// plot draws, for each method, the mean score against the share of the budget.
// The scale is that of what is missing to 100, a logarithm, so that small
// differences near the end can be seen.
func (b *book) plot(g Group, name string) error {
	tasks := b.tasks(g)
	rows := b.summarise(g)
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.errors == r.games })
	if len(rows) == 0 {
		return nil
	}
	lines := make([][]float64, len(rows))
	low, high := math.Inf(1), math.Inf(-1)
	for i, r := range rows {
		lines[i] = b.anytime(tasks, r.method)
		for k, v := range lines[i] {
			lines[i][k] = math.Log10(math.Max(100-v, 1e-3))
			if k > 0 {
				low, high = math.Min(low, lines[i][k]), math.Max(high, lines[i][k])
			}
		}
	}
	low, high = math.Floor(low*2)/2, math.Min(math.Ceil(high*2)/2, 2)
	if high <= low {
		high = low + 0.5
	}
	return os.WriteFile(name, []byte(drawing(g.Title, rows, lines, low, high)), 0o644)
}

func drawing(title string, rows []row, lines [][]float64, low, high float64) string {
	var s strings.Builder
	x := func(part float64) float64 { return left + part*(width-left-right) }
	y := func(v float64) float64 { return top + (high-v)/(high-low)*(height-top-under) }
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&s, "<title>%s: what the mean score lacks to 100, against the share of the budget</title>\n", html.EscapeString(title))
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for v := low; v <= high+1e-9; v += 0.5 {
		fmt.Fprintf(&s, `<line x1="%d" x2="%.0f" y1="%.1f" y2="%.1f" stroke="#ddd"/>`, left, x(1), y(v), y(v))
		fmt.Fprintf(&s, `<text x="%d" y="%.1f" text-anchor="end">%.3g</text>`+"\n", left-6, y(v)+4, 100-math.Pow(10, v))
	}
	for _, part := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(&s, `<text x="%.0f" y="%d" text-anchor="middle">%.0f %%</text>`+"\n", x(part), height-under+18, 100*part)
	}
	fmt.Fprintf(&s, `<text x="%.0f" y="%d" text-anchor="middle">share of the budget</text>`+"\n", x(0.5), height-8)
	fmt.Fprintf(&s, `<text x="14" y="%d" transform="rotate(-90 14 %d)" text-anchor="middle">mean score</text>`+"\n", height/2, height/2)
	for i, r := range rows {
		colour, dash := colours[i%len(colours)], ""
		if !r.ours {
			dash = ` stroke-dasharray="5 3"`
		}
		var points []string
		for k, v := range lines[i] {
			if k > 0 {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(float64(k)/100), y(math.Min(v, high))))
			}
		}
		fmt.Fprintf(&s, `<polyline fill="none" stroke="%s" stroke-width="1.8"%s points="%s"/>`+"\n", colour, dash, strings.Join(points, " "))
		at := top + 14 + 16*i
		fmt.Fprintf(&s, `<line x1="%.0f" x2="%.0f" y1="%d" y2="%d" stroke="%s" stroke-width="2.5"%s/>`, x(1)+10, x(1)+32, at-4, at-4, colour, dash)
		fmt.Fprintf(&s, `<text x="%.0f" y="%d">%s</text>`+"\n", x(1)+38, at, html.EscapeString(r.method))
	}
	s.WriteString("</svg>\n")
	return s.String()
}
