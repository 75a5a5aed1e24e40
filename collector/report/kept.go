package report

import (
	"context"
	"iter"

	"github.com/vernier-ml/vernier/collector"
)

// Kept returns the points that the spool holds already, for a source that must
// know what was recorded before its collector started again. It is meant for the
// time before Fill.
func (s *Spool) Kept(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		var at int64
		s.read(ctx, &at, s.end.Load(), yield)
	}
}
