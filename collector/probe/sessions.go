package probe

import (
	"context"
	"math"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
)

// sessions reads event files as a trial's attempts: where a later session of a
// metric began again, what the earlier ones measured is void, as
// collector.Observe has it. That is known only at the end, so files with several
// sessions are read twice: their points may be too many to keep.
func (r *Report) sessions(ctx context.Context, t Target, events *source.EventDir) findings {
	found, starts := findings{}, starts{}
	for p, err := range events.Sessions(ctx) {
		if ctx.Err() != nil {
			return found
		}
		if err != nil {
			r.trouble(t, err)
			continue
		}
		starts.see(p)
		found.of(p.Metric).add(p.Point)
	}
	if !starts.several() {
		return found
	}
	found = findings{}
	newest := map[string]int{} // the session that has the last value
	for p, err := range events.Sessions(ctx) {
		if ctx.Err() != nil {
			return found
		}
		if err != nil {
			continue // it was told
		}
		if !starts.saw(p) {
			continue
		}
		m := found.of(p.Metric)
		if !starts.count(p) {
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

// starts are the least steps of each metric, by session. math.MaxInt64: it has
// no point there.
type starts map[string][]int64

func (s starts) see(p source.SessionPoint) {
	least := s[p.Metric]
	for len(least) <= p.Session {
		least = append(least, math.MaxInt64)
	}
	least[p.Session] = min(least[p.Session], p.Step)
	s[p.Metric] = least
}

func (s starts) several() bool {
	for _, least := range s {
		if len(least) > 1 {
			return true
		}
	}
	return false
}

// saw reports whether the metric was seen in the session, or a later one. It was
// not where the files are still being written: what such a point makes void was
// not counted, so it is left out.
func (s starts) saw(p source.SessionPoint) bool { return p.Session < len(s[p.Metric]) }

// count reports whether a point lies before all that later sessions did, of
// a session that was seen.
func (s starts) count(p source.SessionPoint) bool {
	for _, least := range s[p.Metric][p.Session+1:] {
		if least != math.MaxInt64 && (p.Step >= least || p.Step == collector.NoStep) {
			return false
		}
	}
	return true
}
