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
	for name, tc := range map[string]struct {
		value    float64
		diverged int // others without numbers
	}{
		"a bad value":                {100, 0},
		"NaN":                        {math.NaN(), 0},
		"NaN, as another has":        {math.NaN(), 1},
		"NaN, as most":               {math.NaN(), 10},
		"infinite":                   {math.Inf(1), 0},
		"infinite, where 10 are NaN": {math.Inf(1), 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := suggest.Study{Objectives: []suggest.Objective{{Name: "loss"}}}
			s.Trials = append(s.Trials, &suggest.Trial{State: suggest.Succeeded, Curve: curve(0.1, 81), Values: []float64{0.1}})
			for number := range tc.diverged {
				s.Trials = append(s.Trials, &suggest.Trial{Number: number + 1, State: suggest.Running, Curve: curve(math.NaN(), 60)})
			}
			bad := &suggest.Trial{Number: tc.diverged + 1, State: suggest.Running, Curve: curve(tc.value, 60)}
			s.Trials = append(s.Trials, bad)
			if stops, _ := rule.Stop(s, bad); !stops {
				t.Error("it goes on beside a good trial")
			}
		})
	}
}
