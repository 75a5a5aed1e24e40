package bayes

import (
	"math"
	"testing"
)

// A point that is better than all others in each objective is a front of no
// extent. Points beside it, which give up a little of one objective for much of
// another, are an advance all the same.
func TestAFrontOfOnePointLeavesRoomBesideIt(t *testing.T) {
	rows := [][]float64{{0.1}, {0.4}, {0.6}, {0.9}}
	values := [][]float64{{-1, 0, 0.5, 1}, {-1, 1, 0, 0.5}}
	var got target
	(&surrogates{data: &data{}}).improveFront(&got, rows, values)
	if len(got.anchors) != 1 || got.anchors[0][0] != 0.1 {
		t.Fatalf("the front is %v", got.anchors)
	}
	worth := func(mean ...float64) float64 {
		return math.Exp(got.acquisition.Utility.Value(mean, []float64{1e-6, 1e-6}, make([]float64, 2), make([]float64, 2)))
	}
	if beside, beyond := worth(-0.9, -2), worth(0.9, -2); beside < 0.05 || beyond > 1e-6 {
		t.Errorf("a point beside the front is worth %v, one far behind it %v", beside, beyond)
	}
}
