package curve

import "math"

type family int

const (
	power family = iota
	exponential
	logarithm
	mmf
)

// shape is a curve that falls to its limit, with fixed parameters.
type shape struct {
	family   family
	rate, by float64
}

// at is the shape at a step, where the time is counted in horizons.
func (s shape) at(step, horizon float64) float64 {
	u := step / horizon
	switch s.family {
	case power: // (t+b)^-alpha: pow3 with b = 1 step, pow4 with others
		return math.Pow(u+math.Max(s.rate, 1/horizon), -s.by)
	case exponential: // exp(-(kappa t)^delta)
		return math.Exp(-math.Pow(s.rate*u, s.by))
	case logarithm: // ilog2: 1/log(t+e)
		return 1 / math.Log(step*s.rate+math.E)
	default: // MMF: 1/(1+(kappa t)^delta)
		return 1 / (1 + math.Pow(s.rate*u, s.by))
	}
}

// shapes is the grid of shape parameters.
func shapes() []shape {
	var out []shape
	add := func(f family, rates, powers []float64) {
		for _, rate := range rates {
			for _, by := range powers {
				out = append(out, shape{family: f, rate: rate, by: by})
			}
		}
	}
	add(power, []float64{0, 0.01, 0.03, 0.1, 0.3, 1}, []float64{0.25, 0.5, 1, 2})
	add(exponential, []float64{1, 3, 10, 30, 100}, []float64{0.5, 1, 2})
	add(logarithm, []float64{0.1, 1, 10}, []float64{0})
	add(mmf, []float64{1, 3, 10, 30, 100}, []float64{0.5, 2, 4})
	return out
}
