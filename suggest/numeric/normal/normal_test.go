package normal_test

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/normal"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Max(math.Abs(want), 1e-300)) {
		t.Errorf("%s = %.17g, want %.17g", what, got, want)
	}
}

// The wanted values are from mpmath at 50 digits.
func TestTails(t *testing.T) {
	near(t, "LogBelow(-40)", normal.LogBelow(-40), -804.608442013753788, 1e-13)
	near(t, "LogBelow(-6)", normal.LogBelow(-6), -20.7367689499747057, 1e-13)
	near(t, "LogBelow(-1)", normal.LogBelow(-1), -1.8410216450092636, 1e-13)
	near(t, "LogBelow(9)", normal.LogBelow(9), -1.12858840595384065e-19, 1)
	near(t, "Quantile(0.975)", normal.Quantile(0.975), 1.959963984540054, 1e-13)
}

// integrate is Simpson's rule.
func integrate(f func(float64) float64, a, b float64) float64 {
	const n = 4000
	h, sum := (b-a)/n, f(a)+f(b)
	for i := 1; i < n; i++ {
		sum += f(a+float64(i)*h) * float64(2+2*(i%2))
	}
	return sum * h / 3
}

func TestLogImprovement(t *testing.T) {
	for _, z := range []float64{-30, -10, -5.0001, -4.9999, -2, 0, 1, 6} {
		logH, below, density := normal.LogImprovement(z)
		// h(z) is the integral of Below up to z.
		want := math.Log(integrate(func(x float64) float64 { return math.Exp(normal.LogBelow(x) - normal.LogDensity(z)) }, z-12, z)) + normal.LogDensity(z)
		near(t, "log h", logH, want, 1e-7)
		const step = 1e-5
		up, _, _ := normal.LogImprovement(z + step)
		down, _, _ := normal.LogImprovement(z - step)
		near(t, "its derivative", below, (up-down)/(2*step), 2e-5)
		near(t, "density over h", density, math.Exp(normal.LogDensity(z)-logH), 1e-8)
	}
}
