package algorithm_test

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// stepwise ends trials with a value that depends on the rung: at rungs above
// flips, the order of the points is reversed.
func stepwise(flips float64) func(*suggest.Trial) (suggest.State, float64) {
	return func(t *suggest.Trial) (suggest.State, float64) {
		x := t.Point[0].Float()
		if t.Resource > flips {
			x = -x
		}
		return suggest.Succeeded, x
	}
}

// PASHA opens a rung only when the order of the points changed at the highest
// two: a consistent order needs no rung above the second.
func TestPASHAOpensRungsWhenTheOrderChanges(t *testing.T) {
	cases := map[string]struct {
		flips, want float64
	}{
		"never":                         {1000, 3},
		"between the first and second":  {1, 9}, // and never again
		"between the second and third":  {3, 3}, // not seen
		"between all that there may be": {0.5, 3},
	}
	for name, c := range cases {
		w := newWorld(t, "pasha", unit())
		w.end = stepwise(c.flips)
		w.play(500, 4)
		if got := promotions(t, w.study.Trials); got != c.want {
			t.Errorf("%s: the largest resource is %g, want %g", name, got, c.want)
		}
	}
}

// Points whose curves cross and cross back are equal to PASHA, as far as they
// are apart at the end.
func TestPASHATakesNoiseForWhatItIs(t *testing.T) {
	w := newWorld(t, "pasha", unit())
	value := func(t *suggest.Trial, step int64) float64 {
		return math.Floor(4*t.Point[0].Float()) + 0.1*rng.New(3, "noise", 1000*t.Number+int(step), "step").Float64()
	}
	w.end = func(t *suggest.Trial) (suggest.State, float64) { return suggest.Succeeded, value(t, int64(t.Resource)) }
	for len(w.study.Trials) < 500 {
		w.ask(4 - len(w.running))
		w.finish()
		for _, trial := range w.study.Trials {
			w.study.Update(trial.Number, func(trial *suggest.Trial) {
				for step := int64(1); step <= int64(trial.Resource) && len(trial.Curve) < int(trial.Resource); step++ {
					trial.Curve = append(trial.Curve, suggest.Sample{Step: step, Value: value(trial, step)})
				}
			})
		}
	}
	if got := promotions(t, w.study.Trials); got != 9 {
		t.Errorf("the largest resource is %g, want 9: all changes of order are noise", got)
	}
}
