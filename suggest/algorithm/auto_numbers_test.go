package algorithm

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest"
)

// A sample is drawn for the number that its trial gets, whichever strategy the
// trials before are of: a replay looks for it under that number.
func TestAReplayFindsTheSamplesOfBothStrategies(t *testing.T) {
	space := numbersOnly(t, 3)
	built, err := newAuto(space, nil)
	if err != nil {
		t.Fatal(err)
	}
	auto := built.(*automatic)
	s := suggest.Study{Space: space, Objectives: []suggest.Objective{{Name: "loss"}}, Budget: 1000}
	u := make([]float64, 3)
	for i := range lead(s.Budget) {
		for k := range u {
			u[k] = float64(i*(37+22*k)%lead(s.Budget)) / float64(lead(s.Budget))
		}
		s.Trials = append(s.Trials, measured(space, i, space.Decode(u), nil))
	}
	found := map[string]int{}
	for len(s.Trials) < 250 {
		got, err := auto.Suggest(t.Context(), s, 1)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		trial := measured(space, len(s.Trials), got[0].Point, got[0].Meta)
		s.Trials = append(s.Trials, trial)
		if _, sample := trial.Meta["cma"]; !sample {
			continue
		}
		arm := "cmaes"
		if trial.Meta[autoMeta] == autoAfresh {
			arm = autoAfresh
		}
		a := auto.arms[arm].(*cmaes)
		r := a.ledger.result(trial)
		if row := a.rules.raw(r, a.replay.ahead.state); &row[0] == &r.x[0] {
			t.Fatalf("the sample of trial %d, of %s, is not found", trial.Number, arm)
		}
		found[arm]++
	}
	if found["cmaes"] < 50 || found[autoAfresh] < 10 {
		t.Errorf("found %v, want more to look at", found)
	}
}
