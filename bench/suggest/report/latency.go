package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vernier-ml/vernier/bench/suggest/play"
)

// latencies is the table of what a suggestion costs.
func latencies(p *page, records []play.Record) {
	byMethod := map[string]map[int]play.Record{}
	var order []string
	sizes := map[int]bool{}
	for _, r := range records {
		if r.Regime != play.Latency {
			continue
		}
		if byMethod[r.Method] == nil {
			byMethod[r.Method] = map[int]play.Record{}
			order = append(order, r.Method)
		}
		byMethod[r.Method][r.Budget] = r
		sizes[r.Budget] = true
	}
	if len(order) == 0 {
		return
	}
	head := []string{"method"}
	columns := slices.Sorted(maps.Keys(sizes))
	for _, n := range columns {
		head = append(head, fmt.Sprintf("%d trials: p50 / p95 ms", n), "first")
	}
	var rows [][]string
	for _, m := range order {
		cells := []string{m}
		for _, n := range columns {
			cells = append(cells, latency(byMethod[m], n)...)
		}
		rows = append(rows, cells)
	}
	p.line("### Time for a suggestion\n")
	p.line("CPU time in the process for one suggestion, what it takes to digest the result before included, after so many trials with 10 numbers; `first` is the first one after a start, when nothing is cached.\n")
	p.table(head, rows)
}

func latency(of map[int]play.Record, n int) []string {
	r, ok := of[n]
	switch {
	case !ok:
		return []string{"", ""}
	case r.Error != "":
		return []string{short(r.Error), ""}
	}
	return []string{millis(r.CPU.Median) + " / " + millis(r.CPU.P95), millis(r.Path[0][1])}
}
