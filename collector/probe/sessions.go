package probe

import (
	"context"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/events"
)

// sessions reads event files as a trial's attempts: where a later session of a
// metric began again, what the earlier ones measured is void, as
// collector.Observe has it. Where that is is known only at the end, so the files
// are read twice: their points may be too many to keep.
func (r *Report) sessions(ctx context.Context, events *events.Dir) findings {
	least := map[string][]int64{} // the least steps of each metric, by session
	for p, err := range events.Sessions(ctx) {
		if err != nil {
			continue // it is told the second time
		}
		for len(least[p.Metric]) <= p.Session {
			least[p.Metric] = append(least[p.Metric], math.MaxInt64)
		}
		least[p.Metric][p.Session] = min(least[p.Metric][p.Session], p.Step)
	}
	found := findings{}
	newest := map[string]int{} // the session that has the last value
	for p, err := range events.Sessions(ctx) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			r.trouble(err)
			continue
		}
		if p.Session >= len(least[p.Metric]) {
			continue // it was written since, and what it makes void has been counted
		}
		later := least[p.Metric][p.Session+1:]
		m := found.of(p.Metric)
		if slices.ContainsFunc(later, func(least int64) bool {
			return least != math.MaxInt64 && (p.Step >= least || p.Step == collector.NoStep)
		}) {
			m.Purged++
			continue
		}
		last := m.Last
		if m.add(p.Point); p.Session < newest[p.Metric] {
			m.Last = last
		}
		newest[p.Metric] = max(newest[p.Metric], p.Session)
	}
	return found
}
