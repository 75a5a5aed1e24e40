package parzen

import (
	"math"
	"testing"
)

func TestSumExpIsThatOfMath(t *testing.T) {
	for i := range 2001 {
		top := 300 - float64(i)
		term := top - negligible*float64(i)/2000
		got, want := sumExp([]float64{term}, []float64{0.3}, top), 0.3*math.Exp(term-top)
		if math.Abs(got-want) > 1e-11*want {
			t.Fatalf("exp(%v) is %v, want %v", term-top, got/0.3, want/0.3)
		}
	}
	if got := sumExp([]float64{-negligible - 1e-9, -1e300, math.Inf(-1)}, []float64{1, 1, 1}, 0); got != 0 {
		t.Errorf("terms that are too small add %v", got)
	}
}
