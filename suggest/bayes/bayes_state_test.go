package bayes

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/box"
	"github.com/vernier-ml/vernier/suggest/numeric/gp"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

func TestBayesianPrepareChangesNoAnswer(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 6, 1)
	a := bayesian(t, space)
	playedBy(t, a, &s, 25, bowlAt(0.4))
	want, err := bayesian(t, space).Suggest(t.Context(), s, 3)
	if err != nil {
		t.Fatal(err)
	}
	a = bayesian(t, space)
	a.Prepare(t.Context(), s)
	fits := maps.Clone(a.cache.fits)
	got, err := a.Suggest(t.Context(), s, 1)
	if err != nil || !got[0].Point.Equal(want[0].Point) || len(fits) == 0 {
		t.Errorf("%v, %v, want %v; %d fits", got, err, want[0], len(fits))
	}
	for role, fit := range a.cache.fits {
		if fit.number != fits[role].number || !fit.sample.equal(fits[role].sample) {
			t.Errorf("%s is fitted again after Prepare", role)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	a = bayesian(t, space)
	a.Prepare(cancelled, s) // must not leave half a fit behind
	if got, err = a.Suggest(t.Context(), s, 3); err != nil || !got[2].Point.Equal(want[2].Point) {
		t.Errorf("after a cancelled Prepare: %v, %v, want %v", got, err, want)
	}
}

// What a batch leaves in the caches must not show.
func TestBayesianBatchesLeaveNoTrace(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 6, 1)
	a := bayesian(t, space)
	playedBy(t, a, &s, 25, bowlAt(0.4))
	a.cache = newModelCache()
	batch, err := a.Suggest(t.Context(), s, 9)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.cache.fits) != len(transforms) {
		t.Errorf("%d fits for one batch", len(a.cache.fits))
	}
	for i, p := range batch {
		if (len(p.Meta) > 0) != (i < len(transforms)) {
			t.Errorf("proposal %d has %v", i, p.Meta)
		}
	}
	for i := range 5 { // all of these run
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		want, err := bayesian(t, space).Suggest(t.Context(), s, 1)
		if err != nil || !got[0].Point.Equal(want[0].Point) {
			t.Errorf("with %d running: %v, want %v (%v)", i, got, want, err)
		}
		s.Trials = append(s.Trials, &suggest.Trial{Number: s.NextNumber(), Point: got[0].Point, State: suggest.Running, Meta: got[0].Meta})
	}
	s.Update(26, func(t *suggest.Trial) { t.State, t.Values = suggest.Succeeded, []float64{0.1} })
	got, err := a.Suggest(t.Context(), s, 4)
	if err != nil {
		t.Fatal(err)
	}
	want, err := bayesian(t, space).Suggest(t.Context(), s, 4)
	if err != nil || !slices.EqualFunc(got, want, func(a, b suggest.Proposal) bool { return a.Point.Equal(b.Point) }) {
		t.Errorf("out of order: %v, want %v (%v)", got, want, err)
	}
}

// A question must not wait longer than it may, also while another uses the caches.
func TestBayesianAnswersWhileAnotherFits(t *testing.T) {
	space := unitCube(t, 3)
	s := newStudyOf(space, 6, 1)
	a := bayesian(t, space)
	playedBy(t, a, &s, 25, bowlAt(0.4))
	a.lock <- struct{}{}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	got, err := a.Suggest(ctx, s, 2)
	if err != nil || len(got) != 1 || got[0].Fallback != "deadline" || !space.Contains(got[0].Point) {
		t.Errorf("%v, %v", got, err)
	}
	a.Prepare(ctx, s)
}

// Above 500 trials the model sees a subset, which grows between its choices: a
// new process must see the same.
func TestBayesianRestartsWithManyTrials(t *testing.T) {
	space := unitCube(t, 2)
	s := newStudyOf(space, 8, 1)
	stream := rng.New(8, "test", 0, "points")
	for range 873 {
		p := suggest.Proposal{Point: space.Decode([]float64{stream.Float64(), stream.Float64()})}
		tell(&s, p, bowlAt(0.4)(coordinates(p.Point))...)
	}
	theta := gp.Smooth(make([]box.Dim, 2)).Theta().Text() // not to fit, which takes seconds
	s.Trials[872].Meta = suggest.Meta{"gp.halfrank": "873 " + theta, "gp.linear": "873 " + theta, "gp.loghalfrank": "873 " + theta, "gp.power": "873 " + theta}
	a := bayesian(t, space)
	for range 3 {
		got, err := a.Suggest(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		want, err := bayesian(t, space).Suggest(t.Context(), s, 1)
		if err != nil || !got[0].Point.Equal(want[0].Point) {
			t.Fatalf("after %d trials: %v, and %v in a new process (%v)", len(s.Trials), got, want, err)
		}
		tell(&s, got[0], bowlAt(0.4)(coordinates(got[0].Point))...)
	}
}
