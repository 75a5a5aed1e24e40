package bayes

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

func TestArmsTakeTurns(t *testing.T) {
	p := portfolio{function: "gp_hedge"}
	count := map[arm]int{}
	for number := range 160 {
		count[p.arm(number, 0)]++
	}
	for _, transform := range []gp.Transform{gp.Linear, gp.HalfRank, gp.LogHalfRank, gp.Power} {
		if count[arm{transform: transform, function: "EI"}] != 30 || count[arm{transform: transform, function: "LCB"}] != 10 {
			t.Errorf("%v", count)
		}
	}
	p.budget = 100
	for number, want := range map[int]bool{0: false, 93: false, 94: true, 99: true, 100: false} {
		if got := p.arm(number, 0).function == "mean"; got != want {
			t.Errorf("trial %d of 100: %v", number, p.arm(number, 0))
		}
	}
	p.budget = 0
	clear(count)
	for number := range 160 {
		count[p.arm(number, manyRunning)]++
	}
	for _, transform := range transforms {
		if count[arm{transform: transform, function: "EI"}] != 20 || count[arm{transform: transform, function: "LCB"}] != 10 || count[arm{transform: transform, function: "PE"}] != 10 {
			t.Errorf("with many running: %v", count)
		}
	}
}
