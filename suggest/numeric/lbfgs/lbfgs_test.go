package lbfgs_test

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/suggest/numeric/lbfgs"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

type problem struct {
	f         func(x, g []float64) float64
	start     []float64
	low, high float64
	want      []float64
	tolerance float64
}

func rosenbrock(x, g []float64) float64 {
	clear(g)
	sum := 0.0
	for i := range len(x) - 1 {
		d := x[i+1] - x[i]*x[i]
		sum += 100*d*d + (1-x[i])*(1-x[i])
		g[i] += -400*d*x[i] - 2*(1-x[i])
		g[i+1] += 200 * d
	}
	return sum
}

// quadratic has its minimum at (1, 2, ... n), with a condition of 1000.
func quadratic(x, g []float64) float64 {
	sum := 0.0
	for i := range x {
		scale := math.Pow(1000, float64(i)/float64(len(x)-1))
		d := x[i] - float64(i+1)
		sum += scale * d * d / 2
		g[i] = scale * d
	}
	return sum
}

func problems() map[string]problem {
	return map[string]problem{
		"quadratic, free":              {quadratic, []float64{0, 0, 0, 0, 0}, -10, 10, []float64{1, 2, 3, 4, 5}, 1e-4},
		"quadratic, three at bounds":   {quadratic, []float64{0, 0, 0, 0, 0}, -10, 2, []float64{1, 2, 2, 2, 2}, 1e-4},
		"quadratic, all at the bounds": {quadratic, []float64{0, 0, 0, 0, 0}, -1, 0.5, []float64{0.5, 0.5, 0.5, 0.5, 0.5}, 0},
		"rosenbrock, free":             {rosenbrock, []float64{-1.2, 1}, -5, 5, []float64{1, 1}, 1e-3},
		"rosenbrock, 10 dimensions":    {rosenbrock, make([]float64, 10), -5, 5, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1e-3},
		// With x <= 0.5 the minimum is at x = 0.5, y = 0.25: f = 0.25.
		"rosenbrock, bound active": {rosenbrock, []float64{-1.2, 0.4}, -2, 0.5, []float64{0.5, 0.25}, 1e-4},
		"start outside of the box": {quadratic, []float64{99, -99}, -10, 10, []float64{1, 2}, 1e-4},
	}
}

func TestMinimize(t *testing.T) {
	for name, p := range problems() {
		t.Run(name, func(t *testing.T) {
			low, high := make([]float64, len(p.start)), make([]float64, len(p.start))
			for i := range low {
				low[i], high[i] = p.low, p.high
			}
			evaluations := 0
			x, value := lbfgs.Minimize(func(x, g []float64) float64 {
				evaluations++
				for _, v := range x {
					if v < p.low || v > p.high {
						t.Fatalf("evaluated outside of the box: %v", x)
					}
				}
				return p.f(x, g)
			}, p.start, low, high, lbfgs.Options{Iterations: 200})
			for i := range x {
				if math.Abs(x[i]-p.want[i]) > p.tolerance {
					t.Errorf("x = %v, want %v (value %v, %d evaluations)", x, p.want, value, evaluations)
					break
				}
			}
		})
	}
}

func TestMinimizeSurvivesOddValues(t *testing.T) {
	low, high := []float64{-1}, []float64{1}
	if _, value := lbfgs.Minimize(func(_, _ []float64) float64 { return math.NaN() }, []float64{0}, low, high, lbfgs.Options{}); !math.IsInf(value, 1) {
		t.Errorf("NaN at the start: %v", value)
	}
	// A wall: nothing finite beyond 0.3.
	x, value := lbfgs.Minimize(func(x, g []float64) float64 {
		if x[0] > 0.3 {
			return math.Inf(1)
		}
		g[0] = -1
		return -x[0]
	}, []float64{0}, low, high, lbfgs.Options{})
	if x[0] < 0.25 || x[0] > 0.3 || value != -x[0] {
		t.Errorf("at the wall: %v, %v", x, value)
	}
	x, value = lbfgs.Minimize(func(_, g []float64) float64 { g[0] = 0; return 7 }, []float64{0.5}, low, high, lbfgs.Options{})
	if x[0] != 0.5 || value != 7 {
		t.Errorf("flat: %v, %v", x, value)
	}
}

// A lying gradient must not make it worse than where it began, nor endless.
func TestMinimizeNeverGetsWorse(t *testing.T) {
	stream := rng.New(1, "lbfgs", 0, "test")
	low, high := []float64{-1, -1, -1}, []float64{1, 1, 1}
	for range 50 {
		first, evaluations := math.NaN(), 0
		_, value := lbfgs.Minimize(func(x, g []float64) float64 {
			evaluations++
			sum := 0.0
			for i := range x {
				sum += math.Sin(9 * x[i])
				g[i] = stream.NormFloat64()
			}
			if math.IsNaN(first) {
				first = sum
			}
			return sum
		}, []float64{0.1, -0.4, 0.9}, low, high, lbfgs.Options{Iterations: 30})
		if value > first || evaluations > 70 {
			t.Errorf("from %v to %v in %d evaluations", first, value, evaluations)
		}
	}
}
