package propose

import (
	"context"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
)

// InitialFirst builds algorithms that propose the study's initial points and those
// that are queued, in their order, before any of their own. An initial point counts as
// proposed when a trial of any state has it, a queued one when a trial has its ID, so
// that nothing is lost or repeated when a process dies.
func InitialFirst(build suggest.New) suggest.New {
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
	space suggest.Space
}

// Prepare implements suggest.Preparer.
func (a *initial) Prepare(ctx context.Context, s suggest.Study) {
	if p, ok := a.Algorithm.(suggest.Preparer); ok {
		p.Prepare(ctx, s)
	}
}

// Recommend implements suggest.Recommender.
func (a *initial) Recommend(ctx context.Context, s suggest.Study) (r suggest.Recommendation, ok bool) {
	if of, can := a.Algorithm.(suggest.Recommender); can {
		return of.Recommend(ctx, s)
	}
	return r, false
}

// Suggest implements suggest.Algorithm.
func (a *initial) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	if len(s.Initial)+len(s.Queued) == 0 || n <= 0 || Cancelled(ctx) {
		return a.Algorithm.Suggest(ctx, s, n)
	}
	var first []suggest.Proposal
	next := s.NextNumber()
	for i, p := range s.Initial {
		tried := slices.ContainsFunc(s.Trials, func(t *suggest.Trial) bool { return t.Point.Equal(p) }) || slices.ContainsFunc(s.Initial[:i], p.Equal)
		if len(first) < n && !tried && a.space.Contains(p) {
			first = append(first, suggest.Proposal{Point: append(suggest.Point(nil), p...), Why: "one of the initial points of the study"})
		}
	}
	for _, q := range s.Queued {
		tried := slices.ContainsFunc(s.Trials, func(t *suggest.Trial) bool { return t.Meta[suggest.MetaQueued] == q.ID })
		if len(first) < n && !tried && a.space.Contains(q.Point) {
			first = append(first, suggest.Proposal{Point: slices.Clone(q.Point), Meta: suggest.Meta{suggest.MetaQueued: q.ID}, Why: "a point that was queued"})
		}
	}
	switch len(first) {
	case 0:
		return a.Algorithm.Suggest(ctx, s, n)
	case n:
		return first, nil
	}
	later := s
	later.Put(suggest.PendingTrials(next, first)...)
	rest, err := a.Algorithm.Suggest(ctx, later, n-len(first))
	if Cancelled(ctx) {
		return nil, err
	}
	// An error comes again with the next question, which has no initial points.
	return append(first, rest...), nil
}
