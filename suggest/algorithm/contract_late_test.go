package algorithm_test

import (
	"context"
	"fmt"
	"github.com/vernier-ml/vernier/suggest/suggesttest"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/propose"
)

// lateInitialPointsAreKept asks with a deadline that has passed: the initial
// points need no time.
func lateInitialPointsAreKept(t *testing.T, r propose.Registration) {
	a, space := build(t, r, mixed())
	s := suggesttest.NewStudy(space, 3)
	s.Initial = []suggest.Point{space.Decode([]float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1})}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	got, err := a.Suggest(ctx, s, 2)
	if err != nil || len(got) == 0 || !got[0].Point.Equal(s.Initial[0]) {
		t.Errorf("got %v, %v, want the initial point", lines(space, got), err)
	}
}

// hugeBatchesEnd asks for more points than there is memory for, with a deadline
// that has passed.
func hugeBatchesEnd(t *testing.T, r propose.Registration) {
	a, space := build(t, r, mixed())
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for _, already := range []int{0, 30} {
		got, err := a.Suggest(ctx, studyOf(t, a, space, 9, already), 1<<50)
		if err != nil || len(got) == 0 || len(got) > 100 {
			t.Errorf("after %d trials: %d proposals, %v", already, len(got), err)
		}
	}
}

// sparseSpacesAreSearched asks in a space of 90 points whose parameters have
// 10^10 combinations, with a deadline that has passed and without.
func sparseSpacesAreSearched(t *testing.T, r propose.Registration) {
	specs := []suggest.ParameterSpec{{Name: "model", Kind: suggest.Categorical}}
	for i := range 10 {
		model := fmt.Sprint("m", i)
		specs[0].List = append(specs[0].List, model)
		specs = append(specs, suggest.ParameterSpec{
			Name: "n" + model, Kind: suggest.Int, Min: "1", Max: "9", When: &suggest.When{Parameter: "model", In: []string{model}},
		})
	}
	a, space := build(t, r, specs)
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	s := suggesttest.NewStudy(space, 3)
	s.Parallel = 50
	for _, ctx := range []context.Context{late, t.Context()} {
		got, err := a.Suggest(ctx, s, 20)
		if err != nil || len(got) == 0 {
			t.Errorf("%d proposals, %v", len(got), err)
		}
		for _, p := range got {
			if !space.Contains(p.Point) {
				t.Errorf("%v is not in the space", p.Point)
			}
		}
	}
}

// seedsShareNoCache asks one algorithm for studies that differ in their seed
// alone.
func seedsShareNoCache(t *testing.T, r propose.Registration) {
	a, space := build(t, r, mixed())
	s := studyOf(t, a, space, 1, 20)
	for seed := range uint64(4) {
		b, _ := build(t, r, mixed())
		s.Seed = seed
		got, want := fmt.Sprint(lines(space, ask(t, a, s, 2))), fmt.Sprint(lines(space, ask(t, b, s, 2)))
		if got != want {
			t.Errorf("seed %d: got %s, a new one says %s", seed, got, want)
		}
	}
}
