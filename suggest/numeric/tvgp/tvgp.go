// Package tvgp has a Gaussian process whose function changes with time: the
// time-varying squared-exponential kernel of Bogunovic, Scarlett and Cevher
// ("Time-varying Gaussian process bandit optimization", AISTATS 2016), as
// population based bandits use it (Parker-Holder, Nguyen and Roberts, NeurIPS
// 2020, section 4). It is made for a few dozen observations.
package tvgp

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Input is where the function is observed.
type Input struct {
	// Time of the observation, in any unit.
	Time float64
	// State that was given and cannot be chosen, each about within [0, 1].
	State []float64
	// X is what was chosen: a number in [0, 1], the index of a choice, or NaN for
	// what is not active.
	X []float64
}

// Hyper are the logarithms of the kernel's parameters. The covariance of two
// observations that differ by d in what was chosen, by s in the state and by t
// in time is
//
//	variance * exp(-d^2/(2 length^2) - s^2/(2 stateLength^2) - decay*t).
//
// The papers write (1-epsilon)^(t/2) for the last factor: decay is
// -log(1-epsilon)/2.
type Hyper [5]float64

// The positions in Hyper.
const (
	logVariance = iota
	logLength
	logStateLength
	logDecay
	logNoise // variance of the noise
)

// prior of the hyper-parameters: independent normals, for observations with
// mean 0 and variance 1, chosen wide.
var prior = [5]struct{ mean, deviation float64 }{
	logVariance:    {0, 0.7},
	logLength:      {math.Log(0.4), 0.7},
	logStateLength: {math.Log(0.5), 1},
	logDecay:       {math.Log(0.1), 1},
	logNoise:       {math.Log(0.05), 1.5},
}

// Default is the mode of the prior.
func Default() Hyper {
	var h Hyper
	for i, p := range prior {
		h[i] = p.mean
	}
	return h
}

// errSingular says that a covariance matrix could not be factorized.
var errSingular = errors.New("tvgp: the covariance matrix is not positive definite")

// Model is a Gaussian process that has seen observations.
type Model struct {
	choice  []bool
	kernel  kernel
	inputs  []Input
	inverse mat.SymDense // of the covariance
	alpha   mat.VecDense // inverse * y
}

// Condition gives the posterior after the observations; choice says which
// dimensions of X are choices. y should have mean 0 and variance 1.
func Condition(hyper Hyper, choice []bool, inputs []Input, y []float64) (*Model, error) {
	m := &Model{choice: choice, kernel: hyper.kernel(), inputs: inputs}
	var chol mat.Cholesky
	if !chol.Factorize(measure(choice, inputs).covariance(hyper)) {
		return nil, errSingular
	}
	if err := chol.InverseTo(&m.inverse); err != nil && !usable(err) {
		return nil, errSingular
	}
	if err := chol.SolveVecTo(&m.alpha, mat.NewVecDense(len(y), y)); err != nil && !usable(err) {
		return nil, errSingular
	}
	return m, nil
}

// usable says whether an error only warns of a bad condition.
func usable(err error) bool {
	var bad mat.Condition
	return errors.As(err, &bad) && !math.IsInf(float64(bad), 1)
}

// Predict gives the posterior's mean and standard deviation, without noise.
func (m *Model) Predict(at Input) (mean, deviation float64) {
	mean, deviation, _, _ = m.predict(at, false)
	return mean, deviation
}

// PredictGradient is Predict with the derivatives by X; they are 0 where X is a
// choice or not active.
func (m *Model) PredictGradient(at Input) (mean, deviation float64, dMean, dDeviation []float64) {
	return m.predict(at, true)
}

func (m *Model) predict(at Input, gradient bool) (mean, deviation float64, dMean, dDeviation []float64) {
	n := len(m.inputs)
	k := mat.NewVecDense(n, nil)
	for i, in := range m.inputs {
		chosen, state := m.distance(at, in)
		k.SetVec(i, m.kernel.at(chosen, state, math.Abs(at.Time-in.Time)))
	}
	w := mat.NewVecDense(n, nil)
	w.MulVec(&m.inverse, k)
	mean = mat.Dot(k, &m.alpha)
	deviation = math.Sqrt(math.Max(m.kernel.variance-mat.Dot(k, w), 1e-12))
	if !gradient {
		return mean, deviation, nil, nil
	}
	dMean, dDeviation = make([]float64, len(at.X)), make([]float64, len(at.X))
	for i, in := range m.inputs {
		for d, x := range at.X {
			if m.choice[d] || math.IsNaN(x) || math.IsNaN(in.X[d]) {
				continue
			}
			dk := -k.AtVec(i) * (x - in.X[d]) * 2 * m.kernel.chosen
			dMean[d] += dk * m.alpha.AtVec(i)
			dDeviation[d] -= dk * w.AtVec(i) / deviation
		}
	}
	return mean, deviation, dMean, dDeviation
}

func (m *Model) distance(a, b Input) (chosen, state float64) {
	return squaredDistance(a.X, b.X, m.choice), squaredDistance(a.State, b.State, nil)
}

// squaredDistance counts 1 for two different choices, and where only one of the
// two is active.
func squaredDistance(a, b []float64, choice []bool) float64 {
	sum := 0.0
	for i, x := range a {
		switch y := b[i]; {
		case math.IsNaN(x) && math.IsNaN(y):
		case math.IsNaN(x) != math.IsNaN(y):
			sum++
		case choice != nil && choice[i]:
			if x != y {
				sum++
			}
		default:
			sum += (x - y) * (x - y)
		}
	}
	return sum
}

// kernel holds the factors of the exponent.
type kernel struct{ variance, logVariance, chosen, state, decay float64 }

func (h Hyper) kernel() kernel {
	return kernel{
		variance: math.Exp(h[logVariance]), logVariance: h[logVariance],
		chosen: math.Exp(-2*h[logLength]) / 2, state: math.Exp(-2*h[logStateLength]) / 2, decay: math.Exp(h[logDecay]),
	}
}

func (k kernel) at(chosen, state, time float64) float64 {
	return math.Exp(k.logVariance - k.chosen*chosen - k.state*state - k.decay*time)
}

// distances between all pairs of inputs.
type distances struct {
	n                   int
	chosen, state, time []float64
}

func measure(choice []bool, inputs []Input) distances {
	n := len(inputs)
	d := distances{n: n, chosen: make([]float64, n*n), state: make([]float64, n*n), time: make([]float64, n*n)}
	for i, a := range inputs {
		for j := i; j < n; j++ {
			at := i*n + j
			d.chosen[at] = squaredDistance(a.X, inputs[j].X, choice)
			d.state[at] = squaredDistance(a.State, inputs[j].State, nil)
			d.time[at] = math.Abs(a.Time - inputs[j].Time)
		}
	}
	return d
}

// jitter is added to the noise, relative to the variance.
const jitter = 1e-8

func (d distances) covariance(h Hyper) *mat.SymDense {
	k, noise := h.kernel(), math.Exp(h[logNoise])
	out := mat.NewSymDense(d.n, nil)
	for i := range d.n {
		for j := i; j < d.n; j++ {
			at := i*d.n + j
			out.SetSym(i, j, k.at(d.chosen[at], d.state[at], d.time[at]))
		}
		out.SetSym(i, i, k.variance*(1+jitter)+noise)
	}
	return out
}
