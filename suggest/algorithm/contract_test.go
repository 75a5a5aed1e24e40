package algorithm_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
)

// holdToContract holds an algorithm to the contract of suggest.Algorithm.
func holdToContract(t *testing.T, r propose.Registration) {
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
		{"queued points are next", queuedPointsAreNext},
		{"repeats are deliberate", repeatsAreDeliberate},
		{"priors come first", priorsComeFirst},
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

// studyOf is a study of n trials of which the last two are running.
func studyOf(t testing.TB, a suggest.Algorithm, space suggest.Space, seed uint64, n int) suggest.Study {
	t.Helper()
	p := suggesttest.Player{Algorithm: a, Study: suggesttest.NewStudy(space, seed), Parallel: 3, Objective: bowl(space)}
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
