package bayes

import (
	"math"
	"testing"
)

func TestBilogKeepsTheBound(t *testing.T) {
	values := []float64{-3, 1e300, 0, 5, -1e-3}
	zero := bilog(values)
	if values[2] != zero || !(values[0] < values[4] && values[4] < zero && zero < values[3] && values[3] < values[1]) {
		t.Errorf("%v, zero at %v", values, zero)
	}
	for _, odd := range [][]float64{{0, 0, 0}, {2, 2, 2}, {0, 0, 1}} {
		for _, v := range append(odd, bilog(odd)) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%v", odd)
			}
		}
	}
}
