package gp

import (
	"math"
	"slices"
	"testing"
)

var transforms = []Transform{Linear, HalfRank, LogHalfRank, Power}

// Each transform keeps the order, and gives mean 0 and variance 1, on any scale.
func TestTransforms(t *testing.T) {
	base := []float64{3, -1, 7, 0.5, 2, 90, 3, -4, 11, 1e4, 0.25}
	for _, transform := range transforms {
		for name, scale := range map[string]float64{"ordinary": 1, "huge": 1e303, "tiny": 1e-300, "upside down": -1e300} {
			x := make([]float64, len(base))
			for i, v := range base {
				x[i] = v * scale
			}
			y := transform.Apply(x)
			mean, variance := 0.0, 0.0
			for _, v := range y {
				mean += v / float64(len(y))
			}
			for _, v := range y {
				variance += (v - mean) * (v - mean) / float64(len(y))
			}
			near(t, string(transform)+", "+name+": mean", mean, 0, 1e-9)
			near(t, string(transform)+", "+name+": variance", variance, 1, 1e-9)
			for i := range x {
				for j := range x {
					if x[i] < x[j] && !(y[i] < y[j]) || x[i] == x[j] && y[i] != y[j] {
						t.Errorf("%s, %s: %v and %v become %v and %v", transform, name, x[i], x[j], y[i], y[j])
					}
				}
			}
		}
		for name, x := range map[string][]float64{"none": nil, "one": {5}, "equal": {2, 2, 2}, "two": {1, 2}} {
			for _, v := range transform.Apply(x) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s of %s: %v", transform, name, transform.Apply(x))
				}
			}
		}
	}
}

// The wanted values are from scipy: for the losses 0 to 6 the median is 3, and
// the deviation of the better half is sqrt((9+4+1+0)/4); the worse half becomes
// 3 - s*norm.ppf(0.5*(r-0.5)/3.5) for the ranks r = 3, 2, 1.
func TestHalfRankAgreesWithScipy(t *testing.T) {
	got := halfRank([]float64{0, 1, 2, 3, 4, 5, 6})
	for i, want := range []float64{0, 1, 2, 3, 3.684922277133874, 4.481020222159218, 5.741201421876292} {
		near(t, "half-ranked", got[i], want, 1e-12)
	}
	x := []float64{5, 1, 2, 100}
	if y := HalfRank.Apply(x); !slices.IsSorted([]float64{y[1], y[2], y[0], y[3]}) || x[0] != 5 {
		t.Errorf("%v becomes %v", x, y)
	}
}

// scipy.stats.yeojohnson([-1.5,-0.2,0,0.3,1,4.5]) gives 0.4137; the values
// are from yeojohnson with lmbda 0.4.
func TestPowerAgreesWithScipy(t *testing.T) {
	x := []float64{-1.5, -0.2, 0, 0.3, 1, 4.5}
	near(t, "lambda", exponent(x), 0.41372538283801313, 1e-3)
	for i, want := range []float64{-2.082597043574791, -0.2117004662973707, 0.0, 0.27662576708580544, 0.7987697769322356, 2.444075389723079} {
		near(t, "power", power(x, 0.4)[i], want, 1e-12)
	}
}

// The loss of a training that has diverged leaves the others apart from each other.
func TestTransformsTellGoodLossesApartBesideADivergedOne(t *testing.T) {
	losses := []float64{0.3, 0.1, 1e30, 0.2, 0.7, 5e31, 0.4}
	for _, transform := range []Transform{HalfRank, LogHalfRank} {
		got := transform.Apply(losses)
		want := transform.Apply([]float64{0.3, 0.1, 2, 0.2, 0.7, 3, 0.4})
		for i := range want {
			near(t, string(transform), got[i], want[i], 1e-3)
		}
	}
}

// Scores of a cross-validation that are equal may differ by rounding.
func TestTransformsTellBadLossesApartWhereGoodOnesAreEqual(t *testing.T) {
	losses := []float64{-0.98, -0.98, -0.9800000000000002, -0.98, -0.98, -0.98, -0.9, -0.7, -0.33, -0.1}
	for _, transform := range []Transform{Linear, HalfRank, LogHalfRank, Power} {
		got := transform.Apply(losses)
		for i := 6; i < len(got); i++ {
			if got[i] <= got[i-1] {
				t.Errorf("%s: %v is %v, and %v is %v", transform, losses[i-1], got[i-1], losses[i], got[i])
			}
		}
	}
}
