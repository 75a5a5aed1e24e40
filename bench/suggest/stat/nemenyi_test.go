package stat

import (
	"math"
	"testing"
)

// TestCriticalDifference compares with the critical values that Demšar's table 5
// gives for the test of Nemenyi at 5 %.
func TestCriticalDifference(t *testing.T) {
	for k, want := range map[int]float64{2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164} {
		n := 14
		got := CriticalDifference(k, n) / math.Sqrt(float64(k*(k+1))/(6*float64(n)))
		if math.Abs(got-want) > 1.1e-3 {
			t.Errorf("%d methods: the critical value is %.4f, want %.3f", k, got, want)
		}
	}
	if !math.IsInf(CriticalDifference(1, 5), 1) || !math.IsInf(CriticalDifference(3, 0), 1) {
		t.Error("a difference can be shown with one method, or on no task")
	}
}
