package report

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// unplayed says why an algorithm has no games.
func unplayed(name string) string {
	switch name {
	case "pbt", "pb2":
		return "It is not part of this benchmark, whose trainings cannot go on from a checkpoint with other values."
	case "grid":
		return "It is not part of this benchmark, whose spaces are not finite or too large for it."
	case "darts":
		return "It is not part of this benchmark: the trial does the search."
	}
	return "It did not play in this run."
}

// pages writes into the page of each algorithm what it did, and all these rows
// into a table, by which a test knows whether the pages are as they were written.
func (b *book) pages(folder, table, preamble string) error {
	var lines [][]string
	var errs []error
	for _, r := range algorithm.All() {
		rows := b.rowsOf(r.Name)
		for _, row := range rows {
			lines = append(lines, append([]string{r.Name}, row...))
		}
		errs = append(errs, splice(filepath.Join(folder, r.Name+".md"), pageText(r.Name, rows, preamble)))
	}
	return errors.Join(append(errs, writeCSV(table, lines))...)
}

// rowsOf is what an algorithm did in each regime, against random search and
// against what peers have in its place.
func (b *book) rowsOf(name string) (rows [][]string) {
	for _, g := range Groups() {
		for _, method := range []string{name, name + "+asha"} {
			rows = append(rows, b.rowsIn(g, method)...)
		}
	}
	return rows
}

func pageText(name string, rows [][]string, preamble string) string {
	var p page
	if len(rows) == 0 {
		p.line("%s\n", unplayed(name))
		return p.String()
	}
	p.line("%s How it is played, and where it lost: [benchmarks](../benchmarks.md).\n", preamble)
	p.table([]string{"regime", "method", "tasks", "seeds", "score", "against", "its score", "difference (95 %)", ""}, rows)
	return p.String()
}

// rowsIn are its rows in a group: regime, method, tasks, seeds, score, and beside
// whom, that one's score, the difference and what it shows.
func (b *book) rowsIn(g Group, method string) (out [][]string) {
	tasks := b.playedBy(b.tasks(g), method)
	if len(tasks) == 0 {
		tasks = b.playedBy(b.allTasks(g), method)
	}
	if len(tasks) == 0 {
		return nil
	}
	for _, other := range append([]string{"random"}, rivals(method)...) {
		d := b.compare(tasks, method, other)
		if d.tasks == 0 || other == method {
			continue
		}
		out = append(out, []string{
			g.Title, "`" + method + "`", fmt.Sprint(d.tasks), fmt.Sprint(d.seeds), fixed(d.mine), other, fixed(d.its), between(d.score), d.verdict(),
		})
	}
	if len(out) == 0 {
		score := b.compare(tasks, method, method).mine
		out = append(out, []string{g.Title, "`" + method + "`", fmt.Sprint(len(tasks)), "", fixed(score), "", "", "", ""})
	}
	return out
}

func (b *book) playedBy(tasks []task, method string) []task {
	var out []task
	for _, t := range tasks {
		for _, g := range b.games[t] {
			if g.Method == method && len(g.Path) > 0 {
				out = append(out, t)
				break
			}
		}
	}
	return out
}
