package report

import (
	"cmp"
	"slices"
	"time"
)

// Stats counts what a Client did. Points are counted from its start: a
// collector that starts again reads everything again.
type Stats struct {
	// Read counts points that the sources yielded, each once.
	Read int64
	// Sent counts points that the service acknowledged to this client.
	Sent int64
	// Capped counts points that the cap on the rate left out.
	Capped int64
	// Refused counts points that the service did not accept, and Undelivered
	// those that were given up when it was not waited for any longer, or when it
	// said that it stores no more of the trial.
	Refused, Undelivered int64
	// Troubles counts what the sources could not read: lines, records, files.
	Troubles int64
	// DroppedBytes counts output that was removed before it was read.
	DroppedBytes int64
	// Batches counts the calls that were acknowledged, Bytes what was in them,
	// and Retries the calls that failed.
	Batches, Bytes, Retries int64
	// Lag is the age of the oldest point that is not acknowledged, counted from
	// when it was read. 0 when there is none.
	Lag time.Duration
	// Sources says how far each source is, in order of name.
	Sources []SourceStats
}

// SourceStats says how far a source is.
type SourceStats struct {
	Name string
	// Read is the largest Seq that was read plus one, and Acked the largest that
	// is stored plus one: places in the file, for files.
	Read, Acked int64
}

// Stats returns the state of now. It may be called while Run runs.
func (c *Client) Stats() Stats {
	in := c.points
	in.mu.Lock()
	defer in.mu.Unlock()
	stats := in.stats
	if oldest := cmp.Or(in.flying, in.opened); !oldest.IsZero() {
		stats.Lag = time.Since(oldest)
	}
	for name, s := range in.sources {
		stats.Sources = append(stats.Sources, SourceStats{name, s.seen, s.stored})
	}
	slices.SortFunc(stats.Sources, func(a, b SourceStats) int { return cmp.Compare(a.Name, b.Name) })
	return stats
}

// Add sums two clients up. Lag and Sources are those of the newer, t.
func (s Stats) Add(t Stats) Stats {
	t.Read += s.Read
	t.Sent += s.Sent
	t.Capped += s.Capped
	t.Refused += s.Refused
	t.Undelivered += s.Undelivered
	t.Troubles += s.Troubles
	t.DroppedBytes += s.DroppedBytes
	t.Batches += s.Batches
	t.Bytes += s.Bytes
	t.Retries += s.Retries
	return t
}
