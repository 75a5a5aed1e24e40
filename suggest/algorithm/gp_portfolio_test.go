package algorithm

import (
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/gp"
)

func TestArmsTakeTurns(t *testing.T) {
	q := &question{bayesianOptimization: bayesian(t, unitCube(t, 1))}
	count := map[arm]int{}
	for number := range 160 {
		count[q.arm(number)]++
	}
	for _, transform := range []gp.Transform{gp.Linear, gp.HalfRank, gp.LogHalfRank, gp.Power} {
		if count[arm{transform, "EI"}] != 30 || count[arm{transform, "LCB"}] != 10 {
			t.Errorf("%v", count)
		}
	}
	q.study.Budget = 100
	for number, want := range map[int]bool{0: false, 93: false, 94: true, 99: true, 100: false} {
		if got := q.arm(number).function == "mean"; got != want {
			t.Errorf("trial %d of 100: %v", number, q.arm(number))
		}
	}
	q.study.Budget = 0
	q.history.measured = make([]*observation, manyResults)
	if got := q.arm(2); got.transform != gp.HalfRank {
		t.Errorf("with many results: %v", got)
	}
	q.history.measured = nil
	clear(count)
	q.running = make([][]float64, manyRunning)
	for number := range 160 {
		count[q.arm(number)]++
	}
	for _, transform := range transforms {
		if count[arm{transform, "EI"}] != 20 || count[arm{transform, "LCB"}] != 10 || count[arm{transform, "PE"}] != 10 {
			t.Errorf("with many running: %v", count)
		}
	}
}
