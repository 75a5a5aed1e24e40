package fidelity

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// hyperband runs brackets of successive halving, one after another, that begin
// with many points and little resource or with few and much (Li et al.,
// "Hyperband: a novel bandit-based approach to hyperparameter optimization",
// JMLR 18, 2018, algorithm 1); after the last kind of bracket it begins with the
// first again. Within a bracket a rung waits for the whole rung below, except
// for points that are among the promoted ones whatever the others bring; a
// bracket that waits lets the next one begin, if the budget of trials allows for
// all of it. So workers wait only near the end of a budget, whose last trials
// belong to the brackets that have begun. A trial that failed, or that a rule
// stopped, is the worst of its rung, and is not promoted.
type hyperband struct {
	*fidelity
	// kinds of brackets, which take turns.
	kinds []bracketKind
}

// bracketKind is how a bracket is laid out.
type bracketKind struct {
	halvings int   // rungs above the first
	points   int64 // that it begins with
}

var _ suggest.Preparer = (*hyperband)(nil)

// Hyperband is the registration of the algorithm.
func Hyperband() propose.Registration {
	summary := "Runs brackets of successive halving that hedge between many short trials and few long ones. For trials that can be short, when it is not known how much their beginning tells."
	return registration("hyperband", summary, "", nil, func(f *fidelity, _ *suggest.SettingsReader) suggest.Algorithm { return f.hyperband() })
}

func (f *fidelity) hyperband() *hyperband { return &hyperband{fidelity: f, kinds: f.bracketKinds()} }

// SuccessiveHalving is synchronous successive halving (Jamieson and Talwalkar,
// "Non-stochastic best arm identification and hyperparameter optimization",
// AISTATS 2016): hyperband with the bracket of the most halvings alone, which is
// repeated, and begun again while it waits.
func SuccessiveHalving() propose.Registration {
	summary := "Tries a number of points for a short time, the best third of them three times as long, and so on, rung by rung. For trials that can be short and whose beginning tells much."
	return registration("successive-halving", summary, "", []propose.Setting{
		{Name: "n_points", Default: "so many that one gets the whole resource", Help: "How many points a bracket begins with, a whole number of at least 1."},
	}, func(f *fidelity, r *suggest.SettingsReader) suggest.Algorithm {
		kind := bracketKind{halvings: f.depth, points: 1}
		for range f.depth {
			kind.points *= f.eta
		}
		kind.points = r.Int("n_points", kind.points, suggest.Range{Min: 1, Max: maxResource})
		return &hyperband{fidelity: f, kinds: []bracketKind{kind}}
	})
}

// bracketKinds are those of Hyperband: bracket s begins with
// ceil((s_max+1) eta^s / (s+1)) points, s = s_max ... 0.
func (f *fidelity) bracketKinds() []bracketKind {
	var kinds []bracketKind
	for s := f.depth; s >= 0; s-- {
		points := int64(f.depth + 1)
		for range s {
			points *= f.eta
		}
		kinds = append(kinds, bracketKind{halvings: s, points: (points + int64(s)) / int64(s+1)})
	}
	return kinds
}

func (h *hyperband) kind(bracket int) bracketKind { return h.kinds[bracket%len(h.kinds)] }

func (h *hyperband) halvings(bracket int) int { return h.kind(bracket).halvings }

// Prepare implements suggest.Preparer.
func (h *hyperband) Prepare(ctx context.Context, s suggest.Study) {
	b := readRungs(h.reader.Read(s))
	if _, e, ok := h.choose(b, s.Budget); ok && e == nil {
		h.prepare(ctx, s, b)
	}
}

// Suggest implements suggest.Algorithm.
func (h *hyperband) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	b := readRungs(h.reader.Read(s))
	return b.fill(ctx, n, func() (suggest.Proposal, error) {
		number, e, ok := h.choose(b, s.Budget)
		if !ok {
			return suggest.Proposal{}, suggest.ErrExhausted
		}
		if e != nil {
			resource := h.resource(h.halvings(number), e.rung+1)
			p := b.promote(e, h.spend(e.trial.Point, resource), resource)
			p.Why = fmt.Sprintf("point of trial %d, one of the best of bracket %d with resource %g, goes on with %g", e.trial.Number, number, e.trial.Resource, resource)
			return p, nil
		}
		resource := h.resource(h.halvings(number), 0)
		drawn, err := h.draw(ctx, s, b, resource)
		if errors.Is(err, suggest.ErrExhausted) {
			return h.promoteLeftover(b, h.halvings)
		}
		if err != nil {
			return suggest.Proposal{}, err
		}
		p := b.start(number, 0, drawn.Point, resource)
		p.Why = fmt.Sprintf("a new point for bracket %d, which begins with %d points and resource %g", number, h.kind(number).points, resource)
		return p, nil
	})
}

// choose says which bracket has work: the first one that does. e is the point to
// promote there; nil: a new one. It is not ok when a result that is still to come
// must be waited for.
func (h *hyperband) choose(b *rungBook, budget int) (number int, e *rungEntry, ok bool) {
	left := b.left(budget)
	for _, bracket := range b.brackets {
		kind := h.kind(bracket.number)
		if e := bracket.promotable(kind, h.eta); e != nil {
			return bracket.number, e, true
		}
		if int64(len(bracket.rung(0).entries)) < kind.points && b.mayBegin(left) {
			return bracket.number, nil, true
		}
		left -= bracket.left(kind, h.eta, true)
	}
	return h.following(b, left), nil, b.mayBegin(left)
}

// following is the number of the next bracket to begin when so many trials are
// left for it. Brackets that would not come to their end are passed over; the one
// without halvings always does.
func (h *hyperband) following(b *rungBook, left int64) int {
	next := 0
	if n := len(b.brackets); n > 0 {
		next = b.brackets[n-1].number + 1
	}
	for range h.kinds {
		if kind := h.kind(next); kind.halvings == 0 || kind.trials(h.eta) <= left {
			return next
		}
		next++
	}
	return next
}

// left is how many trials the budget still has; 0 is no budget.
func (b *rungBook) left(budget int) int64 {
	if budget == 0 {
		return math.MaxInt64
	}
	return int64(budget - b.count)
}

// mayBegin says whether a new point may begin when so many trials are left beside
// those that brackets before it still need. While a trial runs these are kept for
// its bracket; when none does, nothing will need them.
func (b *rungBook) mayBegin(left int64) bool { return left > 0 || !b.waiting() }

// trials of the bracket in all its rungs.
func (k bracketKind) trials(eta int64) int64 {
	sum, points := int64(0), k.points
	for range k.halvings + 1 {
		sum += points
		points /= eta
	}
	return sum
}

// left is how many trials the bracket may still start. Where rungs are filled by
// promotion, one below which too many failed stays smaller.
func (r *bracketBook) left(kind bracketKind, eta int64, promotes bool) int64 {
	sum, room := int64(0), kind.points
	for k := range kind.halvings + 1 {
		level := &rungLevel{}
		if k < len(r.rungs) {
			level = r.rungs[k]
		}
		sum += max(0, room-int64(len(level.entries)))
		over := int64(level.finished()) >= room
		if room /= eta; promotes && over {
			room = min(room, int64(level.usable()))
		}
	}
	return sum
}

// promotable is the point to promote next, from the highest rung that has one:
// one that is among the best of its rung however those that are still to end
// turn out.
func (r *bracketBook) promotable(kind bracketKind, eta int64) (e *rungEntry) {
	room := kind.points // in this rung
	for k := range min(kind.halvings, len(r.rungs)) {
		level := r.rungs[k]
		open := max(0, room-int64(level.finished()))
		keep := room / eta
		if room = keep; open == 0 {
			room = min(keep, int64(level.usable()))
		}
		if candidate, place := level.candidate(); candidate != nil && int64(place)+open < keep {
			e = candidate
		}
	}
	return e
}
