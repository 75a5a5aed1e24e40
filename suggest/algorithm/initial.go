package algorithm

import (
	"context"

	"github.com/vernier-ml/vernier/suggest"
)

// initialFirst builds algorithms that propose the study's initial points, in
// their order, before any of their own. A point counts as proposed when a trial
// of any state has it, so that nothing is lost or repeated when a process dies.
func initialFirst(build suggest.New) suggest.New {
	return func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		a, err := build(space, settings)
		if err != nil {
			return nil, err
		}
		return &initial{Algorithm: a, space: space}, nil
	}
}

type initial struct {
	suggest.Algorithm
	space  suggest.Space
	points triedPoints
}

// Prepare implements suggest.Preparer.
func (a *initial) Prepare(ctx context.Context, s suggest.Study) {
	if p, ok := a.Algorithm.(suggest.Preparer); ok {
		p.Prepare(ctx, s)
	}
}

// Suggest implements suggest.Algorithm.
func (a *initial) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if len(s.Initial) == 0 || n <= 0 || cancelled(ctx) {
		return a.Algorithm.Suggest(ctx, s, n)
	}
	var first []suggest.Proposal
	known, done := a.points.open(a.space, s, true)
	defer done()
	next := s.NextNumber()
	for _, p := range s.Initial {
		if len(first) < n && known.add(p) {
			first = append(first, suggest.Proposal{Point: append(suggest.Point(nil), p...), Why: "an initial point of the user's"})
		}
	}
	switch len(first) {
	case 0:
		return a.Algorithm.Suggest(ctx, s, n)
	case n:
		return first, nil
	}
	later := s
	later.Put(asPending(next, first)...)
	rest, err := a.Algorithm.Suggest(ctx, later, n-len(first))
	if cancelled(ctx) {
		return nil, err
	}
	// An error comes again with the next question, which has no initial points.
	return append(first, rest...), nil
}
