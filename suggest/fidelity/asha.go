package fidelity

import (
	"context"
	"errors"
	"fmt"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// asha is asynchronous successive halving of the promotion type (Li et al., "A
// system for massively parallel hyperparameter tuning", MLSys 2020, algorithm
// 2): whenever there is room for a trial it promotes, from the highest rung
// that has one, a point that is among the best 1/eta of all that ended at its
// rung; when there is none, it starts a new point at the lowest rung. A
// promotion is a new trial of the same point with eta times the resource.
type asha struct {
	*fidelity
	// top is the highest rung to promote to.
	top func(b *rungBook) int
	// late says that a trial is to promote a point rather than to start one; nil: none is.
	late func(s suggest.Study, number int) bool
}

var _ suggest.Preparer = (*asha)(nil)

// ASHA is the registration of the algorithm.
func ASHA() propose.Registration {
	summary := "Tries many points for a short time and promotes the best third of them to three times the resource, without ever waiting. For trials that can be short."
	return registration("asha", summary, "", nil, func(f *fidelity, _ *suggest.SettingsReader) suggest.Algorithm { return f.asha() })
}

func (f *fidelity) asha() *asha {
	return &asha{fidelity: f, top: func(*rungBook) int { return f.depth }}
}

// Prepare implements suggest.Preparer.
func (a *asha) Prepare(ctx context.Context, s suggest.Study) {
	if b := readRungs(a.reader.Read(s)); a.promotable(b, a.top(b)) == nil {
		a.prepare(ctx, s, b)
	}
}

// Suggest implements suggest.Algorithm.
func (a *asha) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	b := readRungs(a.reader.Read(s))
	top := a.top(b)
	return b.fill(ctx, n, func() (suggest.Proposal, error) {
		if e := a.promotable(b, top); e != nil {
			p := b.promote(e, a.spend(e.trial.Point, a.resource(a.depth, e.rung+1)), a.resource(a.depth, e.rung+1))
			p.Why = fmt.Sprintf("point of trial %d, among the best 1/%d with resource %g, goes on with %g", e.trial.Number, a.eta, e.trial.Resource, p.Resource)
			return p, nil
		}
		if a.late != nil && a.late(s, b.next) {
			if e := a.nextInLine(b, top); e != nil {
				p := b.promote(e, a.spend(e.trial.Point, a.resource(a.depth, e.rung+1)), a.resource(a.depth, e.rung+1))
				p.Why = fmt.Sprintf("the budget ends, too soon for new points; that of trial %d, the next in line with resource %g, goes on with %g", e.trial.Number, e.trial.Resource, p.Resource)
				return p, nil
			}
		}
		resource := a.resource(a.depth, 0)
		drawn, err := a.draw(ctx, s, b, resource)
		if errors.Is(err, suggest.ErrExhausted) {
			return a.promoteLeftover(b, func(int) int { return a.depth })
		}
		if err != nil {
			return suggest.Proposal{}, err
		}
		p := b.start(0, 0, drawn.Point, resource)
		p.Why = fmt.Sprintf("a new point, with the smallest resource, %g", resource)
		if a.joint {
			p.Why += ": " + drawn.Why
			p.Fallback = drawn.Fallback
			b.remember(p, drawn.Meta)
		}
		return p, nil
	})
}

// promotable is the best point to promote, from the highest rung that has one: of
// those that ended at a rung, one in eta.
func (a *asha) promotable(b *rungBook, top int) *rungEntry { return a.among(b, top, 0) }

// nextInLine is the same of one more at each rung, where more trials would come too late.
func (a *asha) nextInLine(b *rungBook, top int) *rungEntry { return a.among(b, top, 1) }

// among is the best point to promote of one in eta, and so many more, of those at its rung.
func (a *asha) among(b *rungBook, top, more int) *rungEntry {
	bracket := b.bracket(0)
	for k := min(top, len(bracket.rungs)) - 1; k >= 0; k-- {
		r := bracket.rungs[k]
		if e, place := r.candidate(); e != nil && place < r.finished()/int(a.eta)+more {
			return e
		}
	}
	return nil
}

// promoteLeftover takes the best point that is left to the next rung when there
// is no new one. The error is suggest.ErrExhausted when none is left.
func (f *fidelity) promoteLeftover(b *rungBook, halvings func(bracket int) int) (suggest.Proposal, error) {
	e := b.leftover(halvings)
	if e == nil {
		return suggest.Proposal{}, suggest.ErrExhausted
	}
	resource := f.resource(halvings(e.bracket), e.rung+1)
	p := b.promote(e, f.spend(e.trial.Point, resource), resource)
	p.Why = fmt.Sprintf("there are no new points; that of trial %d is the best of those left, and goes on with resource %g", e.trial.Number, resource)
	return p, nil
}

// fill asks for up to n proposals, one after another, as suggest.Algorithm wants
// it. When nothing is left, suggest.ErrExhausted comes unless a result that is
// still to come may let something start.
func (b *rungBook) fill(ctx context.Context, n int, next func() (suggest.Proposal, error)) ([]suggest.Proposal, error) {
	out, err := propose.Fill(ctx, b.next, n, func(int) (suggest.Proposal, error) { return next() })
	if errors.Is(err, suggest.ErrExhausted) && b.waiting() {
		return nil, nil
	}
	return out, err
}
