package stop_test

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// What is no number is worse than each number (see the package): where a bad value stops a trial
// at a rung, none at all does too, however many others have none.
func TestATrialWithoutNumbersStopsAtARung(t *testing.T) {
	curve := func(value float64, steps int64) (out []suggest.Sample) {
		for step := range steps {
			out = append(out, suggest.Sample{Step: step + 1, Value: value})
		}
		return out
	}
	r, _ := suggest.Find(stop.All(), "asha")
	rule, err := r.New(suggest.Settings{{Name: "r_max", Value: "81"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, others := range []int{0, 1, 10} {
		for _, value := range []float64{100, math.NaN(), math.Inf(1)} {
			s := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}}
			s.Trials = append(s.Trials, &suggest.Trial{State: suggest.Succeeded, Curve: curve(0.1, 81), Values: []float64{0.1}})
			for number := range others {
				s.Trials = append(s.Trials, &suggest.Trial{Number: number + 1, State: suggest.Running, Curve: curve(math.NaN(), 60)})
			}
			bad := &suggest.Trial{Number: others + 1, State: suggest.Running, Curve: curve(value, 60)}
			s.Trials = append(s.Trials, bad)
			stops, why := rule.Stop(s, bad)
			if finite := value == 100; !stops && (!finite || others == 0) {
				t.Errorf("beside a good trial and %d without numbers, one with the value %v goes on", others, value)
			}
			t.Log(others, value, stops, why)
		}
	}
}
