// Package lbfgs minimises a smooth function within a box by the projected
// limited-memory BFGS method (Nocedal and Wright, "Numerical optimization",
// 2006, algorithm 7.4, with the free variables of Bertsekas 1982).
package lbfgs

import "math"

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

// Run is one minimisation, driven from outside: evaluate the function at Ask,
// and Tell the result, until Done. So several can go on in step, evaluated in
// blocks.
type Run struct {
	options     Options
	low, high   []float64
	x, gradient []float64
	value       float64
	trial       []float64
	direction   []float64
	free        []bool
	step        float64
	tries       int
	iterations  int
	evaluations int
	done        bool
	pairs       []pair
}

type pair struct {
	step, change []float64
	rho          float64
}

// Start begins at the point of the box that is nearest to x. The slices of the
// bounds are kept, not changed.
func Start(x, low, high []float64, options Options) *Run {
	r := &Run{options: options.withDefaults(), low: low, high: high, value: math.Inf(1)}
	n := len(x)
	buf := make([]float64, 4*n)
	r.x, r.gradient, r.trial, r.direction = buf[:n:n], buf[n:2*n:2*n], buf[2*n:3*n:3*n], buf[3*n:]
	r.free = make([]bool, n)
	for i := range x {
		r.trial[i] = r.clamp(i, x[i])
	}
	copy(r.x, r.trial)
	return r
}

func (r *Run) clamp(i int, x float64) float64 {
	return math.Min(math.Max(x, r.low[i]), r.high[i])
}

// Ask is the point to evaluate next. It is changed by Tell.
func (r *Run) Ask() []float64 { return r.trial }

// Done says that there is nothing left to do.
func (r *Run) Done() bool { return r.done }

// Best is the point with the smallest value so far, and the value; +Inf when no
// value was finite.
func (r *Run) Best() (x []float64, value float64) { return r.x, r.value }

// Tell takes the value and the gradient at Ask. A value that is not finite
// makes the step shorter; at the start it ends the run.
func (r *Run) Tell(value float64, gradient []float64) {
	if r.done {
		return
	}
	r.evaluations++
	finite := !math.IsNaN(value) && !math.IsInf(value, 0)
	first := r.evaluations == 1
	switch {
	case first && !finite:
		r.done = true
		return
	case first:
		copy(r.gradient, gradient)
		r.value = value
		r.turn()
	case finite && value <= r.value+sufficient*r.predicted():
		r.accept(value, gradient)
	default:
		r.retreat(value, finite)
	}
	if r.evaluations >= r.options.Evaluations {
		r.done = true
	}
}

// predicted is the change that the gradient promises at the trial point.
func (r *Run) predicted() float64 {
	sum := 0.0
	for i := range r.x {
		sum += r.gradient[i] * (r.trial[i] - r.x[i])
	}
	return sum
}

func (r *Run) accept(value float64, gradient []float64) {
	n := len(r.x)
	buf := make([]float64, 2*n)
	p := pair{step: buf[:n:n], change: buf[n:]}
	curvature, longest := 0.0, 0.0
	for i := range r.x {
		p.step[i] = r.trial[i] - r.x[i]
		p.change[i] = gradient[i] - r.gradient[i]
		curvature += p.step[i] * p.change[i]
		longest = math.Max(longest, math.Abs(p.step[i]))
	}
	if curvature > 1e-12 {
		p.rho = 1 / curvature
		r.pairs = append(r.pairs, p)
		if len(r.pairs) > memory {
			r.pairs = r.pairs[1:]
		}
	}
	progress := r.value - value
	copy(r.x, r.trial)
	copy(r.gradient, gradient)
	r.value = value
	r.iterations++
	if r.iterations >= r.options.Iterations || longest < 1e-10 || progress < r.options.Progress*math.Max(1, math.Abs(value)) {
		r.done = true
		return
	}
	r.turn()
}

// retreat makes the step shorter: to the minimum of the parabola through the
// two values and the slope, within limits.
func (r *Run) retreat(value float64, finite bool) {
	r.tries++
	if r.tries >= backtracks {
		if len(r.pairs) == 0 {
			r.done = true
			return
		}
		r.pairs = r.pairs[:0]
		r.turn()
		return
	}
	shrink := 0.1
	if slope := r.predicted(); finite && slope < 0 {
		shrink = math.Min(math.Max(-slope/(2*(value-r.value-slope)), 0.1), 0.5)
	}
	r.step *= shrink
	r.aim()
}

// turn finds a new direction, or ends the run where there is none.
func (r *Run) turn() {
	largest := 0.0
	for i, g := range r.gradient {
		r.free[i] = !(r.x[i] <= r.low[i] && g >= 0 || r.x[i] >= r.high[i] && g <= 0)
		if r.free[i] {
			largest = math.Max(largest, math.Abs(g))
		}
	}
	if !(largest >= r.options.Gradient) {
		r.done = true
		return
	}
	if !r.quasiNewton() {
		r.pairs = r.pairs[:0]
		r.quasiNewton()
	}
	r.step, r.tries = 1, 0
	r.aim()
}

func (r *Run) aim() {
	for i := range r.trial {
		r.trial[i] = r.clamp(i, r.x[i]+r.step*r.direction[i])
	}
}

// quasiNewton is the two-loop recursion on the free variables. It says whether
// the direction goes down.
func (r *Run) quasiNewton() bool {
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
func (r *Run) dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		if r.free[i] {
			sum += a[i] * b[i]
		}
	}
	return sum
}

func (r *Run) add(weight float64, v []float64) {
	for i := range v {
		if r.free[i] {
			r.direction[i] += weight * v[i]
		}
	}
}

// Minimize drives one run to its end. f writes the gradient at x to its second
// argument and returns the value.
func Minimize(f func(x, gradient []float64) float64, x, low, high []float64, options Options) ([]float64, float64) {
	r := Start(x, low, high, options)
	gradient := make([]float64, len(x))
	for !r.Done() {
		value := f(r.Ask(), gradient)
		r.Tell(value, gradient)
	}
	return r.Best()
}
