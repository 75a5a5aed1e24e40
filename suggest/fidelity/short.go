package fidelity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/propose"
)

const (
	// shortWhole is how many trials of the whole resource a budget pays for at least,
	// beside the shorter ones that lead to them.
	shortWhole = 3
	// shortLast is the share of the budget, at its end, in which the next points in line go on
	// before a new one is started: there are no trials left to promote that with.
	shortLast = 0.1
)

// short is MOBSTER with as many rungs as the budget has use for. What it proposes
// is a function of the study: the first trial at the lowest rung says how many rungs there
// are, also when the budget is changed later.
type short struct {
	// ashas by the number of their rungs, less one.
	ashas []*asha
}

var _ suggest.Preparer = (*short)(nil)

// ShortSettings are the settings of NewShort.
func ShortSettings() []propose.Setting {
	all := slices.DeleteFunc(MOBSTER().Settings, func(s propose.Setting) bool { return s.Name == "r_l" })
	for i, s := range all {
		if s.Name == "resource_name" {
			all[i].Help = "The parameter, a number, that says how long a trial trains, such as its epochs. Given, it makes most trials short. The programs of vernier optimize may do without it, give r_max, and read the resource from the field of that name in each answer."
		}
	}
	return all
}

// Shortens says whether the settings ask for short trials: all but the seed do. One that is
// not known is for NewShort to refuse, which knows what it may have been meant for.
func Shortens(settings suggest.Settings) bool {
	return slices.ContainsFunc(settings, func(s suggest.Setting) bool { return s.Name != propose.RandomState })
}

// ShortFrom is the smallest budget of trials that has short ones, where so many run at the same
// time; 0: none has, as the range of the resource has no room for a part of it.
func ShortFrom(space suggest.Space, settings suggest.Settings, parallel int) int {
	r := settings.Read()
	if f := readFidelity(space, r, false); r.Err() == nil && f.depth > 0 {
		return f.shortFrom(parallel)
	}
	return 0
}

// WholeOnly says why no trial has less than the whole resource of a parameter; empty where some do.
func WholeOnly(space suggest.Space, settings suggest.Settings) string {
	f := readFidelity(space, settings.Read(), false)
	if f.parameter < 0 || f.depth > 0 {
		return ""
	}
	if p := space.At(f.parameter); p.Min() < 1 && f.max == 1 {
		return fmt.Sprintf("all trials get the whole of %s, as resources are whole numbers: let it count percent, from 10 to 100", p.Name())
	}
	return fmt.Sprintf("all trials get a resource of %d, as 1/%d of it is below the smallest one, %d: widen the range of %s, or lower eta", f.max, f.eta, f.min, space.At(f.parameter).Name())
}

// shortFrom is what affordable wants of a budget for a second rung.
func (f *fidelity) shortFrom(parallel int) int { return shortWhole*(1+int(f.eta)) + max(0, parallel-1) }

// NewShort builds MOBSTER for each number of rungs.
func NewShort(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	r := settings.Read()
	whole := readFidelity(space, r, false)
	if err := r.Err(); err != nil {
		return nil, err
	}
	s := &short{}
	for depth := range whole.depth + 1 {
		f := *whole
		f.depth, f.reader = depth, history.NewReader(space)
		f.model()
		f.sampler = propose.PriorFirst(f.sampler, space, f.seeding, true)
		rungs := f.asha()
		rungs.late = func(s suggest.Study, number int) bool { return late(s, number, depth) }
		s.ashas = append(s.ashas, rungs)
	}
	return s, nil
}

// of picks the number of rungs for a study, and says why.
func (a *short) of(s suggest.Study) (chosen *asha, why string) {
	depth, begun := a.started(s), true
	if depth < 0 {
		depth, begun = a.affordable(s.Budget, s.Parallel), false
	}
	chosen = a.ashas[depth]
	switch {
	case depth > 0:
		var lengths []string
		for k := range depth + 1 {
			lengths = append(lengths, fmt.Sprint(chosen.resource(depth, k)))
		}
		why = "short trials first, of resource " + strings.Join(lengths[:depth], ", ") + " and " + lengths[depth]
	case len(a.ashas) == 1:
		why = fmt.Sprintf("trials of resource %d alone, as its range has no room for a part of it", chosen.max)
	case begun:
		why = fmt.Sprintf("trials of resource %d alone, as the first ones were", chosen.max)
	default:
		why = fmt.Sprintf("trials of resource %d alone, as %d trials, %d at a time, are too few for short ones: %d are enough", chosen.max, s.Budget, max(1, s.Parallel), chosen.shortFrom(s.Parallel))
	}
	return chosen, why
}

// started is the depth of the first trial at a lowest rung; -1: there is none.
func (a *short) started(s suggest.Study) int {
	for _, t := range s.Trials {
		if t.Meta[metaRung] != "0" {
			continue
		}
		for depth, f := range a.ashas {
			if f.resource(depth, 0) == t.Resource {
				return depth
			}
		}
	}
	return -1
}

// affordable is the largest depth whose rungs a budget of trials fills; a budget of 0 or
// less is not known, and fills all. So many trials run at the same time that a round of them
// is spent at each rung before the next has anything to begin with.
func (a *short) affordable(budget, parallel int) int {
	depth := len(a.ashas) - 1
	if budget <= 0 {
		return depth
	}
	rungs, trials := 0, float64(shortWhole)
	for sum := trials; rungs < depth; rungs++ {
		trials *= float64(a.ashas[0].eta)
		sum += trials
		if waiting := float64(max(0, parallel-1) * (rungs + 1)); sum+waiting > float64(budget) {
			break
		}
	}
	return rungs
}

// Prepare implements suggest.Preparer.
func (a *short) Prepare(ctx context.Context, s suggest.Study) {
	chosen, _ := a.of(s)
	chosen.Prepare(ctx, s)
}

// Suggest implements suggest.Algorithm.
func (a *short) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	chosen, why := a.of(s)
	got, err := chosen.Suggest(ctx, s, n)
	for i := range got {
		got[i].Why = why + ": " + got[i].Why
	}
	return got, err
}

// late says whether a trial comes too late for a point to be promoted from it.
func late(s suggest.Study, number, depth int) bool {
	last := max(shortLast*float64(s.Budget), float64(depth))
	return s.Budget > 0 && depth > 0 && float64(number) >= float64(s.Budget)-last
}
