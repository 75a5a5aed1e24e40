package algorithm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
	"github.com/vernier-ml/vernier/suggest/propose"
)

const (
	// repeatFirst is the number of the first trial that may be a repeat.
	repeatFirst = 16
	// repeatSure is how often the point with the best mean is measured before others are
	// searched for. At most each second trial is such a repeat.
	repeatSure = 4
	// repeatLast is the share of the budget, at its end, that goes to repeats of what may
	// be best: what is found so late would be measured once.
	repeatLast = 0.1
	// repeatHope is how many standard deviations below its mean a point counts then.
	repeatHope = 0.5
)

// repeatingOf builds algorithms that try points again in studies that allow for it
// (Study.Repeats), where the noise is large enough to hide which point is best: as
// SMAC does (Hutter, Hoos and Leyton-Brown, "Sequential model-based optimization for
// general algorithm configuration", LION 2011, section 3.2), what seems best is
// measured again before it is believed. What is best is judged by a Gaussian process
// over all trials, whatever the algorithm.
func repeatingOf(build suggest.New) suggest.New {
	return func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		a, err := build(space, settings)
		if err != nil {
			return nil, err
		}
		return &repeating{Algorithm: a, space: space, judge: bayes.NewJudge(space)}, nil
	}
}

type repeating struct {
	suggest.Algorithm
	space suggest.Space
	judge *bayes.Judge
}

// repeats says whether trials of the study may be repeated: several objectives have
// no one best point.
func repeats(s suggest.Study) bool { return s.Repeats && len(s.Objectives) == 1 }

// coverable says whether the budget is enough for all points of the space: then each is
// tried first.
func (a *repeating) coverable(s suggest.Study) bool {
	size, finite := a.space.Size()
	return finite && s.Budget > 0 && size <= uint64(s.Budget)
}

// Prepare implements suggest.Preparer.
func (a *repeating) Prepare(ctx context.Context, s suggest.Study) {
	if repeats(s) && !a.coverable(s) {
		if _, ok := a.repeat(ctx, s, false); ok {
			return
		}
	}
	if p, ok := a.Algorithm.(suggest.Preparer); ok {
		p.Prepare(ctx, s)
	}
}

// Recommend implements suggest.Recommender.
func (a *repeating) Recommend(ctx context.Context, s suggest.Study) (r suggest.Recommendation, ok bool) {
	if !repeats(s) {
		return r, false
	}
	v, ok := a.judge.Judge(ctx, s)
	if !ok {
		return r, false
	}
	best := v.Points[0]
	return suggest.Recommendation{Trial: best.Trial, Count: best.Results, Value: best.Value, Deviation: best.Deviation, Noise: v.Noise}, true
}

// Suggest implements suggest.Algorithm.
func (a *repeating) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if !repeats(s) {
		return a.Algorithm.Suggest(ctx, s, n)
	}
	var out []suggest.Proposal
	for len(out) < n {
		if done, err := propose.Interrupted(ctx, len(out)); done || err != nil {
			return out, err
		}
		got, err := a.next(ctx, s)
		switch {
		case err != nil && (len(out) == 0 || propose.Cancelled(ctx)):
			return nil, err
		case err != nil || len(got) == 0:
			return out, nil // an error comes again with the next question
		}
		s.Put(suggest.PendingTrials(s.NextNumber(), got)...)
		out = append(out, got...)
	}
	return out, nil
}

// next proposes a point: one again, or one of the algorithm's own. When all of a space
// that the budget covers is tried, what is left of the budget goes to repeats, of which
// results that are to come decide.
func (a *repeating) next(ctx context.Context, s suggest.Study) ([]suggest.Proposal, error) {
	covers := a.coverable(s)
	if !covers {
		if p, ok := a.repeat(ctx, s, false); ok {
			return []suggest.Proposal{p}, nil
		}
	}
	got, err := a.Algorithm.Suggest(ctx, s, 1)
	if !covers || !errors.Is(err, suggest.ErrExhausted) {
		return got, err
	}
	if p, ok := a.repeat(ctx, s, true); ok {
		return []suggest.Proposal{p}, nil
	}
	if slices.ContainsFunc(s.Trials, func(t *suggest.Trial) bool { return !t.State.Finished() }) {
		return nil, nil
	}
	return nil, err
}

// repeat proposes a point again, if the next trial is for that; all says that there is
// no other point.
func (a *repeating) repeat(ctx context.Context, s suggest.Study, all bool) (p suggest.Proposal, ok bool) {
	number := s.NextNumber()
	last := s.Budget > 0 && float64(number) >= (1-repeatLast)*float64(s.Budget)
	before := s.Trial(number - 1)
	early := number < repeatFirst || !last && before != nil && before.Meta[suggest.MetaRepeat] != ""
	if early && !all || ctx.Err() != nil {
		return p, false
	}
	v, ok := a.judge.Judge(ctx, s)
	if !ok || !v.Noisy {
		return p, false
	}
	best := v.Points[0]
	if !last {
		if best.Count+best.Running >= repeatSure {
			return p, false
		}
	} else {
		for _, c := range v.Points[1:] {
			if c.Loss-repeatHope*c.Deviation < best.Loss-repeatHope*best.Deviation {
				best = c
			}
		}
	}
	again := strconv.Itoa(best.Trial.Number)
	return suggest.Proposal{
		Point: append(suggest.Point(nil), best.Trial.Point...), Meta: suggest.Meta{suggest.MetaRepeat: again},
		Why: fmt.Sprintf("trial %s again, with another seed: it seems best and may have been lucky (results of this point so far: %d)", again, best.Results),
	}, true
}
