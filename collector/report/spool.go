package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/journal"
)

// DefaultSpoolLimit is the space that a spool may take, in bytes: about a
// million points.
const DefaultSpoolLimit = 128 << 20

const (
	// maxSpoolLine bounds a record, in bytes: names and texts are clipped, so that
	// none of ours comes near.
	maxSpoolLine = 64 << 10
	// maxFailed bounds the errors of a source that are kept.
	maxFailed = 10
)

// Spool gives points that come from no file a file, so that neither a service
// that is away nor a collector that is killed loses them. Seq is the offset in
// that file.
type Spool struct {
	source string
	lines  *journal.Journal
	failed []error // what from could not read, the first ten; read after lines is finished
}

var _ collector.Source = (*Spool)(nil)

// OpenSpool opens the spool file, or makes it. source is the name that its points
// get. limit is in bytes, 0 means DefaultSpoolLimit.
func OpenSpool(path, source string, limit int64) (*Spool, error) {
	if limit <= 0 {
		limit = DefaultSpoolLimit
	}
	lines, err := journal.Open(journal.Config{Path: path, Limit: limit, MaxLine: maxSpoolLine})
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return &Spool{source: source, lines: lines}, nil
}

// Fill writes the points of from to the spool until from ends, once. A point is
// safe when from's yield returns. Points that find the spool full are dropped.
func (s *Spool) Fill(ctx context.Context, from collector.Source) error {
	defer s.lines.Finish()
	dropped := 0
	for p, err := range from.Points(ctx) {
		if err == nil {
			err = s.put(p)
		}
		if errors.Is(err, journal.ErrFull) {
			dropped++
		} else if err != nil && len(s.failed) < maxFailed {
			s.failed = append(s.failed, err)
		}
	}
	if dropped > 0 {
		s.failed = append(s.failed, fmt.Errorf("%d points dropped: %w", dropped, journal.ErrFull))
	}
	return errors.Join(s.failed...)
}

func (s *Spool) put(p collector.Point) error {
	p.Metric, p.Text = clip(p.Metric, MaxName), clip(p.Text, MaxText)
	record, err := json.Marshal(collector.RecordOf(p))
	if err != nil {
		return err
	}
	return s.lines.Append(record)
}

// Points implements collector.Source. It ends after Fill has returned.
func (s *Spool) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for line, err := range s.lines.Follow(ctx) {
			if !yield(s.point(line, err)) {
				return
			}
		}
		if !s.lines.Finished() || ctx.Err() != nil {
			return
		}
		for _, err := range s.failed {
			if !yield(collector.Point{}, err) {
				return
			}
		}
	}
}

// Kept returns the points that the spool holds already, for a source that must
// know what was recorded before its collector started again. It is meant for the
// time before Fill.
func (s *Spool) Kept(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for line, err := range s.lines.Lines(ctx, 0) {
			if !yield(s.point(line, err)) {
				return
			}
		}
	}
}

func (s *Spool) point(line journal.Line, err error) (collector.Point, error) {
	if err != nil {
		return collector.Point{}, err
	}
	var r collector.Record
	if err := json.Unmarshal(line.Text, &r); err != nil {
		return collector.Point{}, s.lines.At(line.Offset, err)
	}
	return r.Point(s.source, line.Offset), nil
}

// End returns the Seq that the next point will have at least.
func (s *Spool) End() int64 { return s.lines.End() }

// Close closes the file; it stays where it is.
func (s *Spool) Close() error { return s.lines.Close() }
