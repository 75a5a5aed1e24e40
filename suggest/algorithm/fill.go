package algorithm

import (
	"context"
	"errors"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// fill makes at most n proposals, for the trials with the numbers from first
// on, as suggest.Algorithm wants it: cancellation is an error, and what else
// ends it before n is told only when there is no proposal, as it comes again
// with the next question. That may be suggest.ErrExhausted, a deadline that has
// passed, or whatever propose says.
func fill(ctx context.Context, first, n int, propose func(number int) (suggest.Proposal, error)) ([]suggest.Proposal, error) {
	var out []suggest.Proposal
	for number := first; len(out) < n; number++ {
		if done, err := interrupted(ctx, len(out)); err != nil {
			return nil, err
		} else if done {
			break
		}
		p, err := propose(number)
		switch {
		case cancelled(ctx):
			return nil, ctx.Err()
		case err != nil && len(out) == 0:
			return nil, err
		case err != nil:
			return out, nil
		}
		out = append(out, p)
	}
	return out, nil
}

// interrupted says whether to end with what there is: the context was cancelled,
// which is an error, or its deadline has passed and there is a proposal.
func interrupted(ctx context.Context, proposals int) (done bool, err error) {
	err = ctx.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return proposals > 0, nil
	}
	return err != nil, err
}

// cancelled says whether nobody waits for the answer any more. A deadline that
// has passed is no such thing.
func cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// turn is the work for the trial with one number.
type turn struct {
	// draw draws a point, another one at each call. It is called more than once
	// when points were tried already.
	draw func() suggest.Point
	// proposal is what to say of the point that was taken. Nil: nothing.
	proposal func(p suggest.Point) suggest.Proposal
}

// fill makes proposals with points that were not tried. key names the
// randomness of the systematic search.
func (t *tried) fill(ctx context.Context, first, n int, key rng.Key, turns func(number int) turn) ([]suggest.Proposal, error) {
	return fill(ctx, first, n, func(number int) (suggest.Proposal, error) {
		now := turns(number)
		p, err := t.untried(ctx, now.draw, key.Stream(uint64(number)))
		if err != nil || now.proposal == nil {
			return suggest.Proposal{Point: p}, err
		}
		return now.proposal(p), nil
	})
}
