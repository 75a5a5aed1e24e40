package stop

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// A controller that looks now and then must stop what one that looks at each
// report stops, and no later than at the end of the interval.
func TestCurveDoesNotMindHowOftenItIsAsked(t *testing.T) {
	const end, interval = 60, 6
	full := func(number int) []suggest.Sample {
		value := synthetic()["exponentials"](rng.New(3, "looks", number, "curve"))
		out := make([]suggest.Sample, end)
		for i := range out {
			out[i] = suggest.Sample{Step: int64(i + 1), Value: value(float64(i+1) / end)}
		}
		return out
	}
	settings := suggest.Settings{{Name: "interval", Value: "6"}, {Name: "r_max", Value: "60"}}
	var s suggest.Study
	for number := range 6 {
		s.Trials = append(s.Trials, &suggest.Trial{Number: number, State: suggest.Succeeded, Curve: full(number)})
	}
	stopped := 0
	for number := 6; number < 30; number++ {
		always, _ := curveRegistration().New(settings)
		curve := full(number)
		first := 0
		for i := 1; i < end && first == 0; i++ {
			if stop, _ := always.Stop(s, &suggest.Trial{Number: number, State: suggest.Running, Curve: curve[:i]}); stop {
				first = i
			}
		}
		if first == 0 {
			continue
		}
		stopped++
		entry := curve[first-1].Step / interval
		for i := first; i < end && curve[i-1].Step/interval == entry; i++ {
			seldom, _ := curveRegistration().New(settings)
			if stop, _ := seldom.Stop(s, &suggest.Trial{Number: number, State: suggest.Running, Curve: curve[:i]}); !stop {
				t.Errorf("trial %d, stopped at step %d, is not when it is first asked at step %d", number, first, i)
			}
		}
	}
	if stopped < 5 {
		t.Errorf("only %d trials were stopped", stopped)
	}
}

// What was computed for one trial must not be taken for another's, or for that
// of other complete trials.
func TestCurveKeepsNoStaleJudgement(t *testing.T) {
	family := synthetic()["two phases"]
	kept, _ := curveRegistration().New(nil)
	for step := range 60 {
		var s suggest.Study
		for number := range 6 {
			value := family(rng.New(uint64(step/3), "stale", number, "curve"))
			var curve []suggest.Sample
			for i := range 20 {
				curve = append(curve, suggest.Sample{Step: int64(i + 1), Value: value(float64(i+1) / 20)})
			}
			s.Trials = append(s.Trials, &suggest.Trial{Number: number, State: suggest.Succeeded, Curve: curve})
		}
		trial := *s.Trials[5]
		s.Trials = s.Trials[:5]
		trial.Number, trial.State, trial.Curve = 9, suggest.Running, trial.Curve[:6+step%3*4]
		fresh, _ := curveRegistration().New(nil)
		stop, why := kept.Stop(s, &trial)
		if wantStop, wantWhy := fresh.Stop(s, &trial); stop != wantStop || why != wantWhy {
			t.Fatalf("step %d: %v, %q; a new one says %v, %q", step, stop, why, wantStop, wantWhy)
		}
	}
}

// A sample of a long curve is the last of its reports: those before it may be numbers.
func TestCurveForgivesOneReportWithoutANumberOfALongCurve(t *testing.T) {
	rule, err := curveRegistration().New(suggest.Settings{{Name: "r_max", Value: "4000"}})
	if err != nil {
		t.Fatal(err)
	}
	falling := func(to float64, samples int) (out []suggest.Sample) {
		for i := range samples {
			out = append(out, suggest.Sample{Step: int64(16 * (i + 1)), Value: to + math.Exp(-float64(i)/50), Reports: 16})
		}
		return out
	}
	var s suggest.Study
	for number := range 6 {
		s.Trials = append(s.Trials, &suggest.Trial{Number: number, State: suggest.Succeeded, Curve: falling(float64(number)/10, 250)})
	}
	for nan, want := range map[int]bool{0: false, 1: false, 4: true} {
		curve := falling(0, 50)
		for i := range nan {
			curve[len(curve)-1-i].Value = math.NaN()
		}
		if got, why := rule.Stop(s, &suggest.Trial{Number: 6, State: suggest.Running, Curve: curve}); got != want {
			t.Errorf("with %d at its end: %v %s", nan, got, why)
		}
	}
}
