package lstm

import "math"

// Adam is the optimizer of Kingma and Ba ("Adam: a method for stochastic
// optimization", ICLR 2015, algorithm 1) with their defaults.
type Adam struct {
	// Rate of learning; default 0.001.
	Rate float64
	// Clip bounds the length of the gradient; 0 means no bound.
	Clip float64

	steps         int
	first, second []float64
}

// Step changes the weights against the gradient.
func (a *Adam) Step(weights, gradient []float64) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	if a.first == nil {
		a.first, a.second = make([]float64, len(weights)), make([]float64, len(weights))
	}
	rate := a.Rate
	if rate == 0 {
		rate = 0.001
	}
	scale := 1.0
	if a.Clip > 0 {
		sum := 0.0
		for _, g := range gradient {
			sum += g * g
		}
		scale = math.Min(1, a.Clip/math.Max(math.Sqrt(sum), 1e-300))
	}
	a.steps++
	rate *= math.Sqrt(1-math.Pow(beta2, float64(a.steps))) / (1 - math.Pow(beta1, float64(a.steps)))
	for i, g := range gradient {
		if g == 0 && a.first[i] == 0 {
			continue // a choice that was never made
		}
		g *= scale
		a.first[i] += (1 - beta1) * (g - a.first[i])
		a.second[i] += (1 - beta2) * (g*g - a.second[i])
		weights[i] -= rate * a.first[i] / (math.Sqrt(a.second[i]) + epsilon)
	}
}

// Clone copies the optimizer.
func (a *Adam) Clone() *Adam {
	c := *a
	c.first, c.second = append([]float64(nil), a.first...), append([]float64(nil), a.second...)
	return &c
}
