package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/collector"
)

// CopyProgress is how far a copy has come.
type CopyProgress struct {
	// Trials that were looked at, of Total. Equal were there already.
	Trials, Total, Equal int
	// Points of the trials that were looked at, and Copied those that were written.
	Points, Copied int64
}

// copyBatch is the points of one Append of a copy.
const copyBatch = 8192

// errOther means that a copy is not what was copied.
var errOther = errors.New("the copy differs from what was copied")

// Copy copies every trial of one store to another, and compares both afterwards:
// attempts, and number and checksum of the points. Trials that are equal already
// are passed over, so that a copy that was broken off goes on. What the target has
// of other trials stays; a trial that has other points there is an error. Trials
// that report meanwhile may be found to differ: stop what writes. as says which trial
// one becomes; those with an empty UID are left out. Nil: all stay what they are.
// progress is called after every trial.
func Copy(ctx context.Context, from, to collector.Store, as func(collector.TrialID) collector.TrialID, progress func(CopyProgress)) error {
	trials, err := from.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	p := CopyProgress{Total: len(trials)}
	for _, t := range trials {
		id := t.TrialID
		if as != nil {
			id = as(id)
		}
		if id.UID == "" {
			p.Total--
			continue
		}
		if err := copyTrial(ctx, from, to, t.UID, id, &p); err != nil {
			return fmt.Errorf("copy trial %s/%s (%s): %w", id.Namespace, id.Name, id.UID, err)
		}
		p.Trials++
		progress(p)
	}
	return nil
}

func copyTrial(ctx context.Context, from, to collector.Store, uid string, id collector.TrialID, p *CopyProgress) error {
	want, err := sum(ctx, from, uid)
	if err != nil {
		return err
	}
	p.Points += want.points
	got, err := sum(ctx, to, id.UID)
	if err != nil {
		return err
	}
	if got == want {
		p.Equal++
		return nil
	}
	if err := copyPoints(ctx, from, to, uid, id); err != nil {
		return err
	}
	if err := copyAttempts(ctx, from, to, uid, id); err != nil {
		return err
	}
	if got, err = sum(ctx, to, id.UID); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%w: %d points of %d, checksum %.8x of %.8x: delete the trial there, or see that nothing reports for it", errOther,
			got.points, want.points, got.hash, want.hash)
	}
	p.Copied += want.points
	return nil
}

func copyPoints(ctx context.Context, from, to collector.Store, uid string, id collector.TrialID) error {
	var batch []collector.Point
	var of collector.Attempt
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := to.Append(ctx, id, of, batch)
		batch = batch[:0]
		return err
	}
	err := from.Scan(ctx, uid, nil, func(a collector.Attempt, p collector.Point) error {
		if a.ID != of.ID || len(batch) == copyBatch {
			if err := flush(); err != nil {
				return err
			}
		}
		of = a
		batch = append(batch, p)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// copyAttempts copies attempts without points too, and which are final.
func copyAttempts(ctx context.Context, from, to collector.Store, uid string, id collector.TrialID) error {
	states, err := from.Attempts(ctx, uid)
	if err != nil {
		return err
	}
	for _, a := range states {
		if a.Final {
			err = to.Finish(ctx, id, a.Attempt, a.Note)
		} else {
			err = to.Append(ctx, id, a.Attempt, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checksum is what a store has of a trial.
type checksum struct {
	points int64
	hash   [sha256.Size]byte
}

// sum reads a trial whole. Equal trials have equal sums in every store.
func sum(ctx context.Context, s collector.Store, uid string) (checksum, error) {
	h, c := sha256.New(), checksum{}
	states, err := s.Attempts(ctx, uid)
	if err != nil {
		return c, err
	}
	for _, a := range states {
		fmt.Fprintf(h, "%q %q %d %t %d\n", a.Attempt.ID, a.Note, a.Attempt.Started.UnixNano(), a.Final, len(a.Acked))
		for _, source := range slices.Sorted(maps.Keys(a.Acked)) {
			fmt.Fprintf(h, "%q %d\n", source, a.Acked[source])
		}
	}
	err = s.Scan(ctx, uid, nil, func(a collector.Attempt, p collector.Point) error {
		c.points++
		value := p.Value
		if math.IsNaN(value) {
			value = math.NaN() // of one kind
		}
		fmt.Fprintf(h, "%q %q %q %q %d %d %d %x\n", a.ID, p.Source, p.Metric, p.Text, p.Seq, p.Step, p.Time.UnixNano(), math.Float64bits(value))
		return nil
	})
	h.Sum(c.hash[:0])
	return c, err
}
