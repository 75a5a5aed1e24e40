package tvgp

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"
)

// iterations bounds the fit.
const iterations = 25

// Fit finds the hyper-parameters with the highest posterior density, from the
// mode of the prior by BFGS. It ends early, with what it has, when ctx is done.
func Fit(ctx context.Context, choice []bool, inputs []Input, y []float64) Hyper {
	d := measure(choice, inputs)
	h := Default()
	value, gradient, ok := d.logPosterior(h, y)
	if !ok {
		return h
	}
	metric := identity()
	for range iterations {
		if ctx.Err() != nil || norm(gradient) < 1e-3 {
			break
		}
		direction := metric.times(gradient)
		next, v, g, ok := d.climb(h, y, value, gradient, direction)
		if !ok {
			break
		}
		var step, change Hyper
		for i := range h {
			step[i], change[i] = next[i]-h[i], gradient[i]-g[i]
		}
		gained := v - value
		h, value, gradient = next, v, g
		metric.update(step, change)
		if gained < 1e-4 {
			break
		}
	}
	return h
}

// climb searches along a direction until the value rises enough (Armijo).
func (d distances) climb(h Hyper, y []float64, value float64, gradient, direction Hyper) (next Hyper, v float64, g Hyper, ok bool) {
	slope := 0.0
	for i := range h {
		slope += gradient[i] * direction[i]
	}
	length := math.Min(1, 1/norm(direction)) // at most a factor of e at once
	for range 12 {
		for i := range h {
			next[i] = h[i] + length*direction[i]
		}
		if v, g, ok = d.logPosterior(next, y); ok && v >= value+1e-4*length*slope {
			return next, v, g, true
		}
		length /= 2
	}
	return h, value, gradient, false
}

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

func norm(h Hyper) float64 {
	sum := 0.0
	for _, x := range h {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// matrix is the estimate of an inverse Hessian.
type matrix [5][5]float64

func identity() *matrix {
	var m matrix
	for i := range m {
		m[i][i] = 1
	}
	return &m
}

func (m *matrix) times(v Hyper) (out Hyper) {
	for i := range m {
		for j, x := range v {
			out[i] += m[i][j] * x
		}
	}
	return out
}

// update is the BFGS formula (Nocedal and Wright, "Numerical optimization",
// equation 6.17). It is left out when the curvature is not positive.
func (m *matrix) update(step, change Hyper) {
	curvature := 0.0
	for i := range step {
		curvature += step[i] * change[i]
	}
	if curvature < 1e-10 {
		return
	}
	hy := m.times(change)
	yhy := 0.0
	for i := range change {
		yhy += change[i] * hy[i]
	}
	for i := range m {
		for j := range m {
			m[i][j] += (1+yhy/curvature)*step[i]*step[j]/curvature - (hy[i]*step[j]+step[i]*hy[j])/curvature
		}
	}
}
