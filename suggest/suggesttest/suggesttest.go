// Package suggesttest holds the contract suite that each algorithm passes, and
// problems with known minima to measure algorithms on. Tests alone import it.
package suggesttest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// Run holds an algorithm to the contract of suggest.Algorithm. Call it once for
// each registration, in a test of its own or a subtest.
func Run(t *testing.T, r propose.Registration) {
	checks := []struct {
		name  string
		check func(*testing.T, propose.Registration)
	}{
		{"points lie in the space and on its step", pointsLieInTheSpace},
		{"both ends and each choice are reachable", endsAreReachable},
		{"the same seed gives the same answer", seedDecides},
		{"a fresh process gives the same answer", freshProcessAgrees},
		{"asking for many equals asking one by one", manyEqualsOneByOne},
		{"goroutines get the same answer", goroutinesAgree},
		{"trials of all sorts are tolerated", oddTrialsAreTolerated},
		{"no point comes twice in a finite space", noDuplicates},
		{"initial points come first", initialPointsComeFirst},
		{"constraints on parameters hold", constraintsHold},
		{"later objectives count", laterObjectivesCount},
		{"initial points come after a deadline too", lateInitialPointsAreKept},
		{"sparse spaces are searched", sparseSpacesAreSearched},
		{"studies with other seeds share no cache", seedsShareNoCache},
		{"restarts do not show", restartsDoNotShow},
		{"changes of all sorts are seen", changesAreSeen},
		{"the number of processors does not show", processorsDoNotShow},
		{"maximize mirrors minimize", maximizeMirrorsMinimize},
		{"batches have no duplicates", batchesHaveNoDuplicates},
		{"deadlines are kept", deadlinesAreKept},
		{"a huge batch ends with the deadline", hugeBatchesEnd},
		{"hard studies are survived", hardStudiesAreSurvived},
		{"random_state takes the place of the seed", randomStateDecides},
		{"settings that are wrong are named", wrongSettingsAreNamed},
		{"the study is not modified", studyIsNotModified},
		{"a cancelled context returns", cancelledContextReturns},
		{"asking for none gives none", noneGivesNone},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.check(t, r) })
	}
}

// build makes the algorithm. One that refuses a space because a double has no
// step gets the space with steps.
func build(t testing.TB, r propose.Registration, specs []suggest.ParameterSpec, settings ...suggest.Setting) (suggest.Algorithm, suggest.Space) {
	t.Helper()
	space, err := suggest.NewSpace(specs)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.New(space, settings)
	var problems suggest.SpaceError
	if errors.As(err, &problems) && problems[0].Field == "step" {
		if space, err = suggest.NewSpace(withSteps(specs)); err != nil {
			t.Fatal(err)
		}
		a, err = r.New(space, settings)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, space
}

// Player runs a study: it asks, measures and tells, as the controller does.
type Player struct {
	// Algorithm that is asked.
	Algorithm suggest.Algorithm
	// Study so far; Space and Seed must be set.
	Study suggest.Study
	// Parallel is how many trials run at once; 0 means 1.
	Parallel int
	// Objective measures a point, for the trial of the given number. NaN means
	// that the trial failed.
	Objective func(number int, p suggest.Point) float64
}

// Play runs until there are n trials and all have ended, or nothing is left.
// Trials end in the order in which they began, one at a time, and each end is
// followed by the next question. It returns suggest.ErrExhausted when the space
// was exhausted before n.
func (p *Player) Play(ctx context.Context, n int) error {
	running, exhausted := 0, error(nil)
	for {
		if want := min(max(1, p.Parallel)-running, n-len(p.Study.Trials)); want > 0 && exhausted == nil {
			got, err := p.Algorithm.Suggest(ctx, p.Study, want)
			switch {
			case errors.Is(err, suggest.ErrExhausted):
				exhausted = err
			case err != nil:
				return err
			case len(got) > want:
				return fmt.Errorf("%d proposals when %d were asked for", len(got), want)
			case len(got) == 0 && running == 0:
				return errors.New("no proposal while nothing is running")
			}
			running += len(got)
			p.Study.Put(pending(p.Study, got)...)
		}
		if running == 0 {
			return exhausted
		}
		p.finish(len(p.Study.Trials) - running)
		running--
	}
}

// finish ends the i-th trial.
func (p *Player) finish(i int) {
	t := *p.Study.Trials[i]
	t.State = suggest.Failed
	if value := p.Objective(t.Number, t.Point); !math.IsNaN(value) {
		t.State, t.Values = suggest.Succeeded, []float64{value}
	}
	p.Study.Put(&t)
}

// pending makes trials of proposals.
func pending(s suggest.Study, proposals []suggest.Proposal) []*suggest.Trial {
	next := s.NextNumber()
	trials := make([]*suggest.Trial, len(proposals))
	for i, p := range proposals {
		trials[i] = &suggest.Trial{Number: next + i, Point: p.Point, Meta: p.Meta, Resource: p.Resource}
	}
	return trials
}

// bowl is an objective for any space: the squared distance from a place off the
// centre of the unit box. Each seventh trial fails.
func bowl(space suggest.Space) func(int, suggest.Point) float64 {
	return func(number int, p suggest.Point) float64 {
		if number%7 == 6 {
			return math.NaN()
		}
		u, ok := space.Encode(p)
		if !ok {
			return math.NaN()
		}
		sum := 0.0
		for _, x := range u {
			sum += (x - 0.3) * (x - 0.3)
		}
		return sum
	}
}

// newStudy is an empty study with one objective.
func newStudy(space suggest.Space, seed uint64) suggest.Study {
	return suggest.Study{Space: space, Seed: seed, Objectives: []suggest.Objective{{Name: "loss", Direction: suggest.Minimize}}}
}

// history is a study of n trials of which the last two are running.
func history(t testing.TB, a suggest.Algorithm, space suggest.Space, seed uint64, n int) suggest.Study {
	t.Helper()
	p := Player{Algorithm: a, Study: newStudy(space, seed), Parallel: 3, Objective: bowl(space)}
	if err := p.Play(t.Context(), n); err != nil && !errors.Is(err, suggest.ErrExhausted) {
		t.Fatal(err)
	}
	for _, trial := range p.Study.Trials[max(0, len(p.Study.Trials)-2):] {
		p.Study.Update(trial.Number, func(trial *suggest.Trial) { trial.State, trial.Values = suggest.Running, nil })
	}
	return p.Study
}

// ask is Suggest, where an exhausted space is no failure.
func ask(t testing.TB, a suggest.Algorithm, s suggest.Study, n int) []suggest.Proposal {
	t.Helper()
	got, err := a.Suggest(t.Context(), s, n)
	if err != nil && !errors.Is(err, suggest.ErrExhausted) {
		t.Fatal(err)
	}
	return got
}

// lines writes proposals as text.
func lines(space suggest.Space, proposals []suggest.Proposal) []string {
	out := make([]string, len(proposals))
	for i, p := range proposals {
		out[i] = fmt.Sprint(space.Assignments(p.Point), p.Meta, p.Resource)
	}
	return out
}
