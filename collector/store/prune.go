package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// Retention says which curves are kept. The zero value keeps all.
//
// Curves are kept or deleted by experiment, whole, because curves are compared
// within one; a trial whose experiment is not known is an experiment of its own.
// Results of trials are no curves: they stay where trials are.
type Retention struct {
	// MaxAge deletes experiments none of whose trials has reported for longer than
	// this. Zero: age does not matter. Less than MinAge counts as MinAge.
	MaxAge time.Duration
	// MaxExperiments keeps the experiments that reported last, so many of them.
	// Zero: their number does not matter.
	MaxExperiments int
	// Keep says that the curves of a trial stay as they are whatever else is said: of
	// one that runs, or that is the best of its experiment. nil: none.
	Keep func(collector.TrialID) bool
}

// MinAge is the least MaxAge: when a trial has reported is known to the hour.
const MinAge = 2 * time.Hour

// pruneTrials bounds the trials that one call of Prune deletes.
const pruneTrials = 10_000

// Pruned is what a call of Prune did.
type Pruned struct {
	// Trials that were deleted.
	Trials []collector.TrialID
	// More trials are left to delete: call again.
	More bool
}

// Zero says whether everything is kept.
func (r Retention) Zero() bool { return r.MaxAge <= 0 && r.MaxExperiments <= 0 }

// Prune deletes what need not be kept, the oldest first. What was done
// before an error is in the result. It may be called by several processes at once.
func Prune(ctx context.Context, s collector.Store, r Retention, now time.Time) (Pruned, error) {
	done, err := r.prune(ctx, s, now, pruneTrials)
	if err != nil {
		err = fmt.Errorf("prune the store: %w", err)
	}
	return done, err
}

func (r Retention) prune(ctx context.Context, s collector.Store, now time.Time, most int) (done Pruned, err error) {
	if r.Zero() {
		return done, nil
	}
	infos, err := s.Inventory(ctx)
	if err != nil {
		return done, err
	}
	for _, id := range r.victims(infos, now) {
		if len(done.Trials) == most {
			done.More = true
			return done, nil
		}
		if err := s.Delete(ctx, id.UID); err != nil {
			return done, err
		}
		done.Trials = append(done.Trials, id)
	}
	return done, nil
}

// victims are the trials that go, the oldest experiment first.
func (r Retention) victims(infos []collector.TrialInfo, now time.Time) []collector.TrialID {
	type experiment struct {
		touched time.Time
		trials  []collector.TrialID
	}
	byName := map[[3]string]*experiment{}
	var all []*experiment
	for _, info := range infos {
		key := [3]string{info.Namespace, info.Experiment}
		if info.Experiment == "" {
			key[2] = info.UID
		}
		e := byName[key]
		if e == nil {
			e = &experiment{}
			byName[key] = e
			all = append(all, e)
		}
		e.trials = append(e.trials, info.TrialID)
		if info.Touched.After(e.touched) {
			e.touched = info.Touched
		}
	}
	slices.SortStableFunc(all, func(a, b *experiment) int {
		return cmp.Or(b.touched.Compare(a.touched), cmp.Compare(a.trials[0].UID, b.trials[0].UID))
	})
	var victims []collector.TrialID
	for i, e := range slices.Backward(all) {
		old := r.MaxAge > 0 && now.Sub(e.touched) > max(r.MaxAge, MinAge)
		if !old && (r.MaxExperiments <= 0 || i < r.MaxExperiments) {
			continue
		}
		for _, id := range e.trials {
			if r.Keep == nil || !r.Keep(id) {
				victims = append(victims, id)
			}
		}
	}
	return victims
}
