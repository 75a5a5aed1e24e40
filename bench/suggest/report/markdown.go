package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/vernier-ml/vernier/bench/suggest/stat"
)

// page is the text of a report.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(&p.Builder, format+"\n", args...)
}

// table writes a table; the first line of cells is its head.
func (p *page) table(head []string, rows [][]string) {
	p.line("| %s |", strings.Join(head, " | "))
	p.line("|%s", strings.Repeat("---|", len(head)))
	for _, r := range rows {
		p.line("| %s |", strings.Join(r, " | "))
	}
	p.line("")
}

// section of a group: the methods, what sets ours apart from each other one,
// and where ours loses. plots is where the plots lie, as the page sees it.
func (b *book) section(p *page, g Group, plots string) {
	reference := cmp.Or(g.instead, "auto")
	rows := b.summarise(g)
	if len(rows) == 0 {
		return
	}
	tasks := b.tasks(g)
	p.line("### %s\n", g.Title)
	p.line("%s.\n", extent(b, tasks))
	var cells [][]string
	for _, r := range rows {
		if r.errors == r.games {
			cells = append(cells, []string{r.method, r.version, "", "", "", "", "", "", "", "not run: " + short(r.why)})
			continue
		}
		cells = append(cells, r.cells(len(tasks)))
	}
	p.table([]string{"method", "version", "seeds", "score", "over time", "rank", "log10 regret", "found", "CPU p50 / p95", "notes"}, cells)
	p.line("![score against the share of the budget](%s/%s.svg)\n", plots, g.Name)
	b.differences(p, tasks, rows, reference)
}

// extent says how much was played.
func extent(b *book, tasks []task) string {
	games := 0
	var names []string
	for _, t := range tasks {
		games += len(b.games[t])
		names = append(names, t.String())
	}
	return fmt.Sprintf("%d tasks, %d games: %s", len(tasks), games, strings.Join(names, ", "))
}

// String is the problem, the regime and the budget.
func (t task) String() string { return fmt.Sprintf("%s (%s, %d)", t.problem, t.regime, t.budget) }

// span is how many seeds a method played: the fewest and the most of a task.
func span(fewest, most int) string {
	if fewest == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d-%d", fewest, most)
}

func (r row) cells(tasks int) []string {
	var notes []string
	if r.tasks < tasks {
		notes = append(notes, fmt.Sprintf("%d of %d tasks", r.tasks, tasks))
	}
	if r.errors > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d games ended early: %s", r.errors, r.games, short(r.why)))
	}
	name := r.method
	if r.ours {
		name = "**" + name + "**"
	}
	return []string{
		name, r.version, span(r.fewest, r.most), fixed(r.score), fixed(r.auc), fixed(r.rank), fixed(r.regret),
		fmt.Sprintf("%.0f %%", 100*r.success), fmt.Sprintf("%s / %s ms", millis(r.cpu), millis(r.tail)), strings.Join(notes, "; "),
	}
}

func fixed(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

func millis(seconds float64) string {
	if math.IsNaN(seconds) {
		return "-"
	}
	return fmt.Sprintf("%.2g", 1e3*seconds)
}

func short(why string) string {
	why = strings.NewReplacer("\n", " ", "|", "/", "\r", " ").Replace(why)
	if len(why) > 160 {
		why = why[:160] + "..."
	}
	return why
}

// referenceOf is the method to compare the others with: the one that was asked
// for, or else the best of ours.
func referenceOf(rows []row, wanted string) string {
	best := ""
	for _, r := range rows {
		if r.errors == r.games {
			continue
		}
		if r.method == wanted {
			return wanted
		}
		if best == "" && r.ours {
			best = r.method
		}
	}
	return best
}

// differences between one of ours, the wanted one if it played, and all others.
func (b *book) differences(p *page, tasks []task, rows []row, wanted string) {
	reference := referenceOf(rows, wanted)
	if reference == "" {
		return
	}
	var cells [][]string
	var lost []string
	for _, r := range rows {
		if r.method == reference || r.errors == r.games {
			continue
		}
		d := b.compare(tasks, reference, r.method)
		if d.tasks == 0 {
			continue
		}
		cells = append(cells, []string{
			r.method, fmt.Sprint(d.tasks), fmt.Sprint(d.seeds), between(d.score), d.verdict(), between(d.regret), d.record(),
		})
		if d.lost > 0 {
			lost = append(lost, fmt.Sprintf("- against %s: %s", r.method, strings.Join(d.lostOn, ", ")))
		}
	}
	if len(cells) == 0 {
		return
	}
	chosen := ""
	if reference != wanted {
		chosen = " (the best of ours here, chosen afterwards, which flatters it)"
	}
	p.line("`%s`%s against each of them: difference of the mean score, and by how many orders of magnitude the other's regret is larger, with 95 %% intervals; tasks won, drawn and lost.\n", reference, chosen)
	p.table([]string{"against", "tasks", "seeds", "score", "", "orders of magnitude", "won / drawn / lost"}, cells)
	if len(lost) > 0 {
		p.line("Where `%s` lost:\n\n%s\n", reference, strings.Join(lost, "\n"))
	}
}

func (d difference) record() string { return fmt.Sprintf("%d / %d / %d", d.wins, d.ties, d.lost) }

func between(i stat.Interval) string {
	return fmt.Sprintf("%+.2f (%+.2f to %+.2f)", i.Mean, i.Low, i.High)
}
