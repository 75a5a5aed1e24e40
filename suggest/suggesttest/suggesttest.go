// Package suggesttest plays studies: problems with known minima, trainings with
// learning curves, and what tests of algorithms and of stopping rules share. Tests
// alone import it.
package suggesttest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

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
			p.Study.Put(suggest.PendingTrials(p.Study.NextNumber(), got)...)
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

// NewStudy is an empty study with one objective.
func NewStudy(space suggest.Space, seed uint64) suggest.Study {
	return suggest.Study{Space: space, Seed: seed, Objectives: []suggest.Objective{{Name: "loss", Direction: suggest.Minimize}}}
}

// Edited is the study with another trial in the place of each.
func Edited(s suggest.Study, edit func(i int, t *suggest.Trial)) suggest.Study {
	before := s.Trials
	s.Trials = make([]*suggest.Trial, len(before))
	for i, t := range before {
		after := *t
		edit(i, &after)
		s.Trials[i] = &after
	}
	return s
}

// SettingsAreNamed holds that settings are documented, and that the error about one
// with a wrong value names it.
func SettingsAreNamed(t *testing.T, documented []suggest.SettingHelp, wrong []string, build func(suggest.Settings) error) {
	t.Helper()
	names := []string{"no_such_setting", ""}
	for _, s := range documented {
		names = append(names, s.Name)
		if s.Name == "" || s.Default == "" || s.Help == "" {
			t.Errorf("setting %q is not documented", s.Name)
		}
	}
	if !slices.IsSorted(names[2:]) {
		t.Error("the settings are not sorted")
	}
	for _, name := range names {
		for _, value := range wrong {
			err := build(suggest.Settings{{Name: name, Value: value}})
			var problem *suggest.SettingError
			if !errors.As(err, &problem) || problem.Name != name {
				t.Errorf("%q = %q: got %v, want an error about it", name, value, err)
			}
		}
	}
}
