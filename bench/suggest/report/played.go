package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/bench/suggest/peer"
)

// extents says on top of everything what was played, with how many seeds, and
// who was left out.
func (b *book) extents(p *page) {
	var rows [][]string
	seen := map[string]bool{}
	for _, g := range Groups() {
		tasks := b.tasks(g)
		if len(tasks) == 0 {
			continue
		}
		var methods []string
		for _, r := range b.summarise(g) {
			if r.errors < r.games {
				seen[r.method] = true
				methods = append(methods, fmt.Sprintf("%s %s", r.method, span(r.fewest, r.most)))
			}
		}
		slices.Sort(methods)
		rows = append(rows, []string{g.Title, fmt.Sprint(len(tasks)), strings.Join(methods, ", ")})
	}
	if len(rows) == 0 {
		return
	}
	p.line("### What was played\n")
	p.line("A range of seeds is that of the tasks, where a run was stopped. The protocol asks for 30.\n")
	p.table([]string{"regime", "tasks", "methods, with seeds for each task"}, rows)
	var absent []string
	for _, one := range peer.All() {
		if !seen[one.Name] {
			absent = append(absent, one.Name)
		}
	}
	p.line("Connected, but not played in this run: %s.\n", list(absent))
}
