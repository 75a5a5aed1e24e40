package tvgp

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/vernier-ml/vernier/suggest/numeric/lbfgs"
)

// Fit finds the hyper-parameters with the highest posterior density, from the
// mode of the prior. It ends early, with what it has, when ctx is done.
func Fit(ctx context.Context, choice []bool, inputs []Input, y []float64) Hyper {
	d := measure(choice, inputs)
	start := Default()
	var low, high Hyper
	for i, p := range prior {
		low[i], high[i] = p.mean-far*p.deviation, p.mean+far*p.deviation
	}
	h, _ := lbfgs.Minimize(func(x, gradient []float64) float64 {
		if ctx.Err() != nil {
			return math.NaN()
		}
		value, slope, ok := d.logPosterior(Hyper(x), y)
		if !ok {
			return math.NaN()
		}
		for i, v := range slope {
			gradient[i] = -v
		}
		return -value
	}, start[:], low[:], high[:], lbfgs.Options{Iterations: 25, Gradient: 1e-3, Progress: 1e-5, FirstStep: 1})
	return Hyper(h)
}

// far is how many deviations of the prior bound the fit.
const far = 10

// logPosterior is the logarithm of the posterior density of the
// hyper-parameters but for a constant, and its gradient (Rasmussen and Williams,
// "Gaussian processes for machine learning", equations 5.8 and 5.9).
func (d distances) logPosterior(h Hyper, y []float64) (value float64, gradient Hyper, ok bool) {
	k := d.covariance(h)
	var chol mat.Cholesky
	if !chol.Factorize(k) {
		return 0, gradient, false
	}
	alpha := mat.NewVecDense(d.n, nil)
	if err := chol.SolveVecTo(alpha, mat.NewVecDense(d.n, y)); err != nil && !usable(err) {
		return 0, gradient, false
	}
	inverse := mat.NewSymDense(d.n, nil)
	if err := chol.InverseTo(inverse); err != nil && !usable(err) {
		return 0, gradient, false
	}
	value = -mat.Dot(alpha, mat.NewVecDense(d.n, y))/2 - chol.LogDet()/2
	variance, noise, decay := math.Exp(h[logVariance]), math.Exp(h[logNoise]), math.Exp(h[logDecay])
	chosen, state := math.Exp(-2*h[logLength]), math.Exp(-2*h[logStateLength])
	for i := range d.n {
		w := (alpha.AtVec(i)*alpha.AtVec(i) - inverse.At(i, i)) / 2
		gradient[logVariance] += w * variance * (1 + jitter)
		gradient[logNoise] += w * noise
		for j := i + 1; j < d.n; j++ {
			at := i*d.n + j
			w := (alpha.AtVec(i)*alpha.AtVec(j) - inverse.At(i, j)) * k.At(i, j) // twice a half: both triangles
			gradient[logVariance] += w
			gradient[logLength] += w * d.chosen[at] * chosen
			gradient[logStateLength] += w * d.state[at] * state
			gradient[logDecay] -= w * d.time[at] * decay
		}
	}
	for i, p := range prior {
		z := (h[i] - p.mean) / p.deviation
		value -= z * z / 2
		gradient[i] -= z / p.deviation
	}
	return value, gradient, !math.IsNaN(value)
}
