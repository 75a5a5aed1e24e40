package report

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// placed is a method with its mean rank.
type placed struct {
	method string
	rank   float64
}

// order of the methods that played all tasks, best first, and how far two must
// be apart to differ. It is empty where a test would say nothing.
func (b *book) order(tasks []task) (order []placed, apart float64, blocks int) {
	ranks, blocks := b.ranks(tasks)
	if len(ranks) < 3 || blocks < 3 {
		return nil, 0, blocks
	}
	for _, m := range slices.Sorted(maps.Keys(ranks)) {
		order = append(order, placed{m, ranks[m]})
	}
	slices.SortStableFunc(order, func(a, b placed) int { return cmp.Compare(a.rank, b.rank) })
	return order, stat.CriticalDifference(len(order), blocks), blocks
}

// rankText says what the plot of the ranks shows.
func (b *book) rankText(tasks []task) (string, bool) {
	order, apart, blocks := b.order(tasks)
	if order == nil {
		return "", false
	}
	best := []string{}
	for _, o := range order[1:] {
		if o.rank-order[0].rank <= apart {
			best = append(best, o.method)
		}
	}
	text := fmt.Sprintf("Mean ranks over %d tasks differ at 5 %% when they are %.2f apart (Nemenyi; tasks are the blocks, so few tasks show little). ", blocks, apart)
	if len(best) == 0 {
		return text + fmt.Sprintf("`%s` is apart from all others.", order[0].method), true
	}
	return text + fmt.Sprintf("Not apart from the first, `%s`: %s.", order[0].method, strings.Join(best, ", ")), true
}

// rankPlot draws the mean ranks on a line, with a bar over those that are not
// apart (Demšar 2006). Nothing is drawn where a test would say nothing.
func (b *book) rankPlot(g Group, name string) error {
	order, apart, _ := b.order(b.tasks(g))
	if order == nil {
		return nil
	}
	return os.WriteFile(name, []byte(rankDrawing(g.Title, order, apart)), 0o644)
}

// cliques are the longest runs of the order whose ends are not apart.
func cliques(order []placed, apart float64) [][2]int {
	var out [][2]int
	reached := 0
	for i := range order {
		j := i
		for j+1 < len(order) && order[j+1].rank-order[i].rank <= apart {
			j++
		}
		if j > i && j > reached {
			out = append(out, [2]int{i, j})
			reached = j
		}
	}
	return out
}

func rankDrawing(title string, order []placed, apart float64) string {
	const axis, first, last, label, line = 64, 210, 550, 200, 18
	bars := cliques(order, apart)
	k := len(order)
	x := func(rank float64) float64 { return first + (rank-1)/float64(k-1)*(last-first) }
	below := axis + 14 + 8*len(bars)
	tall := below + line*((k+1)/2) + 14
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, tall)
	fmt.Fprintf(&s, "<title>%s: mean ranks, best to the left</title>\n", html.EscapeString(title))
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, tall)
	end := x(1 + min(apart, float64(k-1)))
	fmt.Fprintf(&s, `<line x1="%d" x2="%.1f" y1="22" y2="22" stroke="black" stroke-width="2"/><text x="%d" y="16">critical difference %.2f</text>`+"\n", first, end, first, apart)
	fmt.Fprintf(&s, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="black"/>`+"\n", first, last, axis, axis)
	for r := 1; r <= k; r++ {
		fmt.Fprintf(&s, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="black"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(float64(r)), x(float64(r)), axis-5, axis, x(float64(r)), axis-9, r)
	}
	for i, bar := range bars {
		y := axis + 10 + 8*i
		fmt.Fprintf(&s, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#0072b2" stroke-width="4"/>`+"\n", x(order[bar[0]].rank)-3, x(order[bar[1]].rank)+3, y, y)
	}
	for i, o := range order {
		side, at, anchor, y := float64(label), label-6, "end", below+line*(i+1)
		if i >= (k+1)/2 {
			side, at, anchor, y = width-label, width-label+6, "start", below+line*(k-i)
		}
		fmt.Fprintf(&s, `<polyline fill="none" stroke="#777" points="%.1f,%d %.1f,%d %.1f,%d"/>`, x(o.rank), axis, x(o.rank), y-4, side, y-4)
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="%s">%s %.2f</text>`+"\n", at, y, anchor, html.EscapeString(o.method), o.rank)
	}
	s.WriteString("</svg>\n")
	return s.String()
}
