package algorithm

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/bayes"
	"github.com/vernier-ml/vernier/suggest/cmaes"
	"github.com/vernier-ml/vernier/suggest/design"
	"github.com/vernier-ml/vernier/suggest/fidelity"
	"github.com/vernier-ml/vernier/suggest/history"
	"github.com/vernier-ml/vernier/suggest/population"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/tpe"
)

const (
	autoName = "auto"
	// autoEnumerated bounds the spaces that are gone through without a model.
	autoEnumerated = 16
	// autoSmall is the largest budget that the Gaussian process has for itself.
	autoSmall = 300
	// autoLeast and autoMost bound how many results the Gaussian process leads
	// for when the budget is larger or not known: a tenth of the budget. With
	// more results, evolution strategies find what is left to find at a fraction
	// of the time.
	autoLeast, autoMost = 150, 250
	// autoFronts is how many results Gaussian processes lead for with several
	// objectives.
	autoFronts = 400
	// autoWarm is how many results of its own a study with several objectives and
	// a warm start has before they do: the processes know no other study then.
	autoWarm = 10
	// autoEvery is which part of the later trials the Gaussian process still
	// gets: one in so many.
	autoEvery = 16
	// autoOther is which part of the later trials the evolution strategy gets that
	// has not found the best one: one in so many, and none in the second half of
	// the budget.
	autoOther = 5
	// autoForest is Bayesian optimization with a forest.
	autoForest = "forest"
	// autoBatch bounds how many trials are picked for before any is asked for.
	autoBatch = 256
	// autoAfresh is an evolution strategy that knows its own trials only.
	autoAfresh = "afresh"
	// autoMeta is where a trial keeps which strategy or model it is of.
	autoMeta = "arm"
)

// automatic picks the algorithm for each trial from what is known of the study, and
// says why. The pick is a function of the study alone, so that it is the same
// after a restart.
type automatic struct {
	space    suggest.Space
	arms     map[string]suggest.Algorithm
	views    map[string]*view
	words    bool // at least half of the parameters are categorical
	branches []*branch
}

var _ suggest.Preparer = (*automatic)(nil)

func autoRegistration() propose.Registration {
	return propose.Registration{
		Name:     autoName,
		Summary:  "Picks the algorithm for each trial from the search space, the objectives and the number of results, and says why. The best choice when in doubt.",
		New:      newAuto,
		Settings: fidelity.ShortSettings(),
		Adaptive: true,
	}
}

func newAuto(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
	r := settings.Read()
	propose.ReadSeeding(r)
	if err := r.Err(); err != nil { // the arms would name settings of their own
		return nil, err
	}
	a := &automatic{
		space: space, arms: map[string]suggest.Algorithm{},
		views: map[string]*view{"cmaes": {}, autoAfresh: {}},
	}
	guided := func(space suggest.Space, settings suggest.Settings) (suggest.Algorithm, error) {
		return cmaes.New(space, append(slices.Clip(settings), suggest.Setting{Name: "surrogate", Value: "true"}))
	}
	builders := []struct {
		name  string
		build suggest.New
	}{
		{bayes.Name, bayes.New}, {autoForest, bayes.NewForest}, {"cmaes", guided}, {autoAfresh, guided},
		{"tpe", tpe.Registration().New}, {"nsga2", population.NSGA2().New},
		{"random", design.NewRandom},
	}
	for _, b := range builders {
		arm, err := b.build(space, settings)
		if err != nil {
			return nil, err
		}
		a.arms[b.name] = arm
	}
	if arm, err := design.NewGrid(space, settings); err == nil { // the only one that refuses spaces
		a.arms["grid"] = arm
	}
	var err error
	if a.branches, err = newBranches(space, settings); err != nil {
		return nil, err
	}
	for _, b := range a.branches {
		a.arms[b.arm] = b.search
	}
	choices := 0
	for i := range space.Len() {
		if space.At(i).Kind() == suggest.Categorical {
			choices++
		}
	}
	a.words = choices > 0 && 2*choices >= space.Len()
	return a, nil
}

// pick is the choice of an algorithm.
type pick struct {
	arm, why string
	one      bool // the next pick depends on what this one proposes
}

// sign says in a proposal who made it.
func (p pick) sign(proposal suggest.Proposal) suggest.Proposal {
	if proposal.Why == "" {
		proposal.Why = p.why
	} else {
		proposal.Why = p.why + ": " + proposal.Why
	}
	if p.one { // what was fitted to a branch says nothing of the whole
		proposal.Meta = nil
	}
	if p.arm == autoAfresh || slices.Contains(models, p.arm) {
		proposal.Meta = maps.Clone(proposal.Meta)
		if proposal.Meta == nil {
			proposal.Meta = suggest.Meta{}
		}
		proposal.Meta[autoMeta] = p.arm
	}
	return proposal
}

// Prepare implements suggest.Preparer.
func (a *automatic) Prepare(ctx context.Context, s suggest.Study) {
	p := a.pick(s, s.NextNumber(), situationOf(s))
	if arm, ok := a.arms[p.arm].(suggest.Preparer); ok {
		arm.Prepare(ctx, a.known(p.arm, s))
	}
}

// Suggest implements suggest.Algorithm.
func (a *automatic) Suggest(ctx context.Context, s suggest.Study, n int) ([]suggest.Proposal, error) {
	var out []suggest.Proposal
	now := situationOf(s)
	next := s.NextNumber()
	for len(out) < n {
		p := a.pick(s, next+len(out), now)
		run := 1
		for !p.one && run < autoBatch && len(out)+run < n && a.pick(s, next+len(out)+run, now) == p {
			run++
		}
		got, err := a.arms[p.arm].Suggest(ctx, a.known(p.arm, s), run)
		if p.one && err != nil && !propose.Cancelled(ctx) {
			now.whole = true
			continue
		}
		if err != nil {
			if len(out) > 0 && !propose.Cancelled(ctx) {
				break // what is there; the error comes again with the next question
			}
			return nil, err
		}
		for i := range got {
			got[i] = p.sign(got[i])
		}
		s.Trials = append(s.Trials[:len(s.Trials):len(s.Trials)], suggest.PendingTrials(next+len(out), got)...)
		out = append(out, got...)
		if len(got) < run {
			break
		}
	}
	return out, nil
}

// pick decides for one trial.
func (a *automatic) pick(s suggest.Study, number int, now situation) pick {
	size, finite := a.space.Size()
	most := uint64(max(autoEnumerated, 2*s.Parallel))
	_, gridded := a.arms["grid"]
	several := len(s.Objectives) > 1
	switch {
	case finite && gridded && size <= most && (s.Budget <= 0 || size <= uint64(s.Budget)):
		return pick{arm: "grid", why: fmt.Sprintf("all of the %d points, as there are so few", size)}
	case len(s.Objectives) == 0:
		return pick{arm: "random", why: "drawn from the parameters' distributions, as there is no objective to learn from"}
	case several && len(s.Warm) > 0 && now.finished < autoWarm:
		return pick{arm: "tpe", why: fmt.Sprintf("Parzen estimators, which learn from earlier studies with %d objectives", len(s.Objectives))}
	case several && now.finished < autoFronts:
		return pick{arm: bayes.Name, why: fmt.Sprintf("Gaussian processes for %d objectives, as results are few", len(s.Objectives))}
	case several:
		return pick{arm: "nsga2", why: fmt.Sprintf("a genetic algorithm for %d objectives, as there are %d results or more", len(s.Objectives), autoFronts)}
	case now.finished < lead(s.Budget):
		return a.early(s, number, now)
	case number%autoEvery == 0:
		return pick{arm: bayes.Name, why: fmt.Sprintf("a Gaussian process for one trial in %d", autoEvery)}
	case a.words:
		return pick{arm: "tpe", why: fmt.Sprintf("Parzen estimators, as most parameters are choices and there are %d results or more", lead(s.Budget))}
	case !finite && now.afresh != a.other(s, number):
		return pick{arm: autoAfresh, why: "an evolution strategy that began afresh, in case all the others are in the wrong place"}
	}
	return pick{arm: "cmaes", why: fmt.Sprintf("an evolution strategy that goes on from the best, as there are %d results or more", lead(s.Budget))}
}

// other says whether a trial is for the evolution strategy that has not found
// the best one.
func (a *automatic) other(s suggest.Study, number int) bool {
	return number%autoOther == 0 && (s.Budget <= 0 || number < s.Budget/2)
}

// lead is how many results the Gaussian process leads for.
func lead(budget int) int {
	switch {
	case budget <= 0:
		return autoMost
	case budget <= autoSmall:
		return autoSmall
	}
	return max(autoLeast, min(budget/10, autoMost))
}

// known is the study that an arm learns from: a strategy that began afresh and
// the one that goes on from the best do not hear of each other's results, which
// would lead them away from what they adapt to. The trials keep their numbers: a
// sample is drawn for the number that its trial gets, and found again by it.
func (a *automatic) known(arm string, s suggest.Study) suggest.Study {
	for _, b := range a.branches {
		if b.arm == arm {
			return b.study(s)
		}
	}
	if arm != autoAfresh && arm != "cmaes" {
		return s
	}
	own := s
	own.Trials = a.views[arm].of(s.Trials, func(t *suggest.Trial) *suggest.Trial {
		if (t.Meta[autoMeta] == autoAfresh) != (arm == autoAfresh) {
			return &suggest.Trial{Number: t.Number, Point: t.Point, State: suggest.Killed}
		}
		return t
	})
	return own
}

// situation is what the trials have come to.
type situation struct {
	// finished is how many trials have ended with values.
	finished int
	// ranks of the trials of each model; nil with several objectives, or many results.
	ranks map[string]float64
	// forest says that a forest can model the study, and stopped that it cannot since a rule
	// stops trials.
	forest, stopped bool
	// whole says that a branch had no new point, so that this call searches the whole space.
	whole bool
	// afresh says that the best trial comes from the strategy that began afresh.
	afresh bool
}

func situationOf(s suggest.Study) (now situation) {
	best, number := math.Inf(1), -1
	now.forest = bayes.Forestable(s)
	now.stopped = !now.forest && len(s.Objectives) == 1 && len(s.Warm) == 0
	for _, t := range s.Trials {
		if len(t.Values) == 0 || !t.State.Finished() {
			continue
		}
		now.finished++
		if len(s.Objectives) == 0 {
			continue
		}
		_, violation := history.ViolationsOf(s.Constraints, t.Constraints)
		loss := s.Objectives[0].Loss(t.Values[0])
		if violation == 0 && (loss < best || loss == best && t.Number < number) {
			best, number, now.afresh = loss, t.Number, t.Meta[autoMeta] == autoAfresh
		}
	}
	if len(s.Objectives) == 1 && now.finished < lead(s.Budget) {
		now.ranks = modelRanks(s)
	}
	return now
}
