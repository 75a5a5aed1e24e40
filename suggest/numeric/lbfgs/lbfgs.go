// Package lbfgs minimises a smooth function within a box by the projected
// limited-memory BFGS method (Nocedal and Wright, "Numerical optimization",
// 2006, algorithm 7.4, with the free variables of Bertsekas 1982).
package lbfgs

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Options bound the work. The zero value has the defaults.
type Options struct {
	// Iterations at most; default 60.
	Iterations int
	// Evaluations at most, the first included; default 2*Iterations+10.
	Evaluations int
	// Gradient is the largest projected component at which it stops; default
	// 1e-5.
	Gradient float64
	// Progress is the decrease in an iteration, relative to the larger of 1 and
	// the value, at which it stops; default 1e-9.
	Progress float64
	// FirstStep is the length of the first step at most; default 0.2.
	FirstStep float64
}

func (o Options) withDefaults() Options {
	if o.Iterations == 0 {
		o.Iterations = 60
	}
	if o.Evaluations == 0 {
		o.Evaluations = 2*o.Iterations + 10
	}
	if o.Gradient == 0 {
		o.Gradient = 1e-5
	}
	if o.Progress == 0 {
		o.Progress = 1e-9
	}
	if o.FirstStep == 0 {
		o.FirstStep = 0.2
	}
	return o
}

const (
	memory     = 8    // pairs of steps and gradient changes that are kept
	sufficient = 1e-4 // share of the predicted decrease that a step must reach (Armijo)
	backtracks = 20
)

// Minimize finds the point of the box with the smallest value, beginning at the
// one that is nearest to x, and the value: +Inf when that at the start is not
// finite. f writes the gradient to its second argument. A value that is not
// finite makes the step shorter.
func Minimize(f func(x, gradient []float64) float64, x, low, high []float64, options Options) ([]float64, float64) {
	n := len(x)
	buf := make([]float64, 5*n)
	r := &run{
		f: f, options: options.withDefaults(), low: low, high: high, free: make([]bool, n),
		x: buf[:n:n], gradient: buf[n : 2*n : 2*n], trial: buf[2*n : 3*n : 3*n], slope: buf[3*n : 4*n : 4*n], direction: buf[4*n:],
	}
	for i := range x {
		r.x[i] = r.clamp(i, x[i])
	}
	if r.value = r.evaluate(r.x, r.gradient); !finite(r.value) {
		return r.x, math.Inf(1)
	}
	for range r.options.Iterations {
		if !r.turn() || !r.step() {
			break
		}
	}
	return r.x, r.value
}

type run struct {
	f           func(x, gradient []float64) float64
	options     Options
	evaluations int
	low, high   []float64
	x, gradient []float64
	value       float64
	trial       []float64 // the next x, and its gradient
	slope       []float64
	direction   []float64
	free        []bool // not held by a bound
	pairs       []pair
}

type pair struct {
	step, change []float64
	rho          float64
}

func (r *run) clamp(i int, x float64) float64 {
	return math.Min(math.Max(x, r.low[i]), r.high[i])
}

func (r *run) evaluate(x, gradient []float64) float64 {
	r.evaluations++
	return r.f(x, gradient)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// step goes along the direction until the value has become smaller by enough
// (Armijo), and says whether to go on.
func (r *run) step() bool {
	length := 1.0
	for tries := 0; r.evaluations < r.options.Evaluations; {
		predicted := 0.0
		for i := range r.trial {
			r.trial[i] = r.clamp(i, r.x[i]+length*r.direction[i])
			predicted += r.gradient[i] * (r.trial[i] - r.x[i])
		}
		value := r.evaluate(r.trial, r.slope)
		if finite(value) && value <= r.value+sufficient*predicted {
			return r.accept(value)
		}
		if tries++; tries == backtracks {
			again := len(r.pairs) > 0
			r.pairs = r.pairs[:0]
			return again // from the gradient alone
		}
		shrink := 0.1
		if finite(value) && predicted < 0 { // the minimum of the parabola through what is known
			shrink = math.Min(math.Max(-predicted/(2*(value-r.value-predicted)), 0.1), 0.5)
		}
		length *= shrink
	}
	return false
}

// accept moves to the trial point and says whether to go on.
func (r *run) accept(value float64) bool {
	p := pair{step: make([]float64, len(r.x)), change: make([]float64, len(r.x))}
	floats.SubTo(p.step, r.trial, r.x)
	floats.SubTo(p.change, r.slope, r.gradient)
	if curvature := floats.Dot(p.step, p.change); curvature > 1e-12 {
		p.rho = 1 / curvature
		r.pairs = append(r.pairs, p)
		r.pairs = r.pairs[max(0, len(r.pairs)-memory):]
	}
	progress := r.value - value
	copy(r.x, r.trial)
	copy(r.gradient, r.slope)
	r.value = value
	return floats.Norm(p.step, math.Inf(1)) >= 1e-10 && progress >= r.options.Progress*math.Max(1, math.Abs(value))
}

// turn finds a new direction, and says whether there is one.
func (r *run) turn() bool {
	largest := 0.0
	for i, g := range r.gradient {
		r.free[i] = !(r.x[i] <= r.low[i] && g >= 0 || r.x[i] >= r.high[i] && g <= 0)
		if r.free[i] {
			largest = math.Max(largest, math.Abs(g))
		}
	}
	if !(largest >= r.options.Gradient) {
		return false
	}
	if !r.quasiNewton() {
		r.pairs = r.pairs[:0]
		r.quasiNewton()
	}
	return true
}

// quasiNewton is the two-loop recursion on the free variables. It says whether
// the direction goes down.
func (r *run) quasiNewton() bool {
	d := r.direction
	for i := range d {
		d[i] = 0
		if r.free[i] {
			d[i] = -r.gradient[i]
		}
	}
	if len(r.pairs) == 0 {
		norm := math.Sqrt(r.dot(d, d))
		scale := r.options.FirstStep / math.Max(norm, r.options.FirstStep)
		for i := range d {
			d[i] *= scale
		}
		return true
	}
	var weights [memory]float64
	for k := len(r.pairs) - 1; k >= 0; k-- {
		p := r.pairs[k]
		weights[k] = p.rho * r.dot(p.step, d)
		r.add(-weights[k], p.change)
	}
	last := r.pairs[len(r.pairs)-1]
	scale := 1 / (last.rho * r.dot(last.change, last.change))
	if math.IsInf(scale, 0) || math.IsNaN(scale) {
		return false
	}
	for i := range d {
		d[i] *= scale
	}
	for k, p := range r.pairs {
		r.add(weights[k]-p.rho*r.dot(p.change, d), p.step)
	}
	return r.dot(d, r.gradient) < 0
}

// dot is over the free variables.
func (r *run) dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		if r.free[i] {
			sum += a[i] * b[i]
		}
	}
	return sum
}

func (r *run) add(weight float64, v []float64) {
	for i := range v {
		if r.free[i] {
			r.direction[i] += weight * v[i]
		}
	}
}
