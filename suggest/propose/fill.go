// Package propose is what algorithms have in common when they make proposals: the
// loop that fills an answer, the search for a point that was not tried, initial
// points and seeds.
package propose

import (
	"context"
	"errors"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// Fill makes at most n proposals, for the trials with the numbers from first
// on, as suggest.Algorithm wants it: cancellation is an error, and what else
// ends it before n is told only when there is no proposal, as it comes again
// with the next question. That may be suggest.ErrExhausted, a deadline that has
// passed, or whatever propose says.
func Fill(ctx context.Context, first, n int, propose func(number int) (suggest.Proposal, error)) ([]suggest.Proposal, error) {
	var out []suggest.Proposal
	for number := first; len(out) < n; number++ {
		if done, err := Interrupted(ctx, len(out)); err != nil {
			return nil, err
		} else if done {
			break
		}
		p, err := propose(number)
		switch {
		case Cancelled(ctx):
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

// Interrupted says whether to end with what there is: the context was cancelled,
// which is an error, or its deadline has passed and there is a proposal.
func Interrupted(ctx context.Context, proposals int) (done bool, err error) {
	err = ctx.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		return proposals > 0, nil
	}
	return err != nil, err
}

// Cancelled says whether the answer is no longer waited for. A deadline that
// has passed is no such thing.
func Cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// Drawing is the work for the trial with one number.
type Drawing struct {
	// draw draws a point, another one at each call. It is called more than once
	// when points were tried already.
	Draw func() suggest.Point
	// proposal is what to say of the point that was taken. Nil: nothing.
	Proposal func(p suggest.Point) suggest.Proposal
}

// Fill makes proposals with points that were not tried. key names the
// randomness of the systematic search.
func (t *Tried) Fill(ctx context.Context, first, n int, key rng.Key, turns func(number int) Drawing) ([]suggest.Proposal, error) {
	return Fill(ctx, first, n, func(number int) (suggest.Proposal, error) {
		now := turns(number)
		p, err := t.Untried(ctx, now.Draw, key.Stream(uint64(number)))
		if err != nil || now.Proposal == nil {
			return suggest.Proposal{Point: p}, err
		}
		return now.Proposal(p), nil
	})
}
