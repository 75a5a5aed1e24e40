package algorithm_test

import (
	"strconv"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

func TestASHAPromotesFromTheHighestRung(t *testing.T) {
	w := newWorld(t, "asha", unit(), suggest.Setting{Name: "r_max", Value: "9"})
	w.ask(9)
	for i := range w.study.Trials {
		w.study.Update(i, func(t *suggest.Trial) { t.State, t.Values = suggest.Succeeded, []float64{float64(8 - i)} })
	}
	w.ask(3)
	for i := 9; i < 12; i++ {
		if got, want := w.study.Trials[i].Meta["parent"], strconv.Itoa(17-i); got != want || w.study.Trials[i].Resource != 3 {
			t.Errorf("trial %d continues %s with %g, want %s with 3", i, got, w.study.Trials[i].Resource, want)
		}
		w.study.Update(i, func(t *suggest.Trial) { t.State, t.Values = suggest.Succeeded, []float64{float64(i)} })
	}
	w.ask(2)
	if got := w.study.Trials[12]; got.Meta["parent"] != "9" || got.Resource != 9 {
		t.Errorf("got %v with %g, want trial 9 with 9", got.Meta, got.Resource)
	}
	if got := w.study.Trials[13]; got.Meta["rung"] != "0" {
		t.Errorf("got %v, want a new point", got.Meta)
	}
}

func TestAKilledPromotionIsRepeated(t *testing.T) {
	w := newWorld(t, "asha", unit(), suggest.Setting{Name: "r_max", Value: "9"})
	w.ask(3)
	for i := range w.study.Trials {
		w.study.Update(i, func(t *suggest.Trial) { t.State, t.Values = suggest.Succeeded, []float64{float64(i)} })
	}
	for range 3 {
		w.ask(1)
		last := w.study.Trials[len(w.study.Trials)-1]
		if last.Meta["parent"] != "0" {
			t.Errorf("trial %d is %v, want the best one again", last.Number, last.Meta)
		}
		w.study.Update(last.Number, func(t *suggest.Trial) { t.State = suggest.Killed })
	}
}
