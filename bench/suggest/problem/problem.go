// Package problem holds the objectives of the benchmark of suggestion
// algorithms: each with its search space, its noise-free truth and, where it is
// known, its optimum. Everything is to be minimised. A problem is a value made
// from constants and fixed seeds, so that it is the same in each process; a game
// of a function plays an instance of it, which depends on the seed of the game.
package problem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/numeric/rng"
)

// The suites.
const (
	Continuous     = "s1"
	Mixed          = "s2"
	Noisy          = "s3"
	Fidelity       = "s4"
	MultiObjective = "s5"
	Live           = "s6"
	Tabular        = "s7"
	LiveCurves     = "s8"
)

// Suites are the names of the suites of functions, in order.
func Suites() []string {
	return []string{Continuous, Mixed, Noisy, Fidelity, MultiObjective}
}

// Problem is an objective to minimise, or several.
type Problem struct {
	// Name is unique over all suites.
	Name string
	// Suite that it belongs to.
	Suite string
	// Family of problems that differ in size only. It is the cluster of the
	// statistics: members of a family are not independent evidence.
	Family string
	// Parameters of the space.
	Parameters []suggest.ParameterSpec
	// Truth is the outcome at a point of the space, without noise. Nil for a real task.
	Truth func(suggest.Point) Outcome
	// Noise is the standard deviation of what is added to the first value, at a
	// point with the given truth. Nil: none.
	Noise func(p suggest.Point, truth float64) float64
	// Optimum of the first value; NaN when it is not known.
	Optimum float64
	// At is a point that has the optimum, rounded; empty when not written down.
	At []suggest.Assignment
	// Curve makes this a problem of the suites Fidelity and LiveCurves; nil otherwise.
	Curve *Curve
	// Front makes this a problem with several objectives; nil otherwise.
	Front *Front
	// Task makes this a training, and Table one of a grid of trainings that were
	// done; nil otherwise.
	Task  *Task
	Table *Table
	// Verdict: it is of the half by which nothing is chosen; see Real.
	Verdict bool
	// drawn is the function with the optimum at another place; nil: it cannot be moved.
	drawn func(*rng.Stream) *Problem
	// instance names what was drawn; empty for the problem itself.
	instance string
}

// Outcome of one evaluation.
type Outcome struct {
	// Values of the objectives; empty when it failed.
	Values []float64 `json:"values,omitempty"`
	// Constraints are met when they are not above zero.
	Constraints []float64 `json:"constraints,omitempty"`
	// Failed: the program crashed.
	Failed bool `json:"failed,omitempty"`
	// Mean of the first value over repeats; nil where Problem.Truth says it.
	Mean *float64 `json:"-"`
	// Curve is the loss after each step of a real training, NaN once it has diverged.
	Curve []float64 `json:"-"`
}

// Space of the problem. The tests build each, so that it cannot fail later.
func (p *Problem) Space() suggest.Space {
	space, err := suggest.NewSpace(p.Parameters)
	if err != nil {
		panic(fmt.Sprintf("problem %s: %v", p.Name, err))
	}
	return space
}

// Observe evaluates with noise; noise is the stream of the trial.
func (p *Problem) Observe(point suggest.Point, noise *rng.Stream) Outcome {
	o := p.Truth(point)
	if p.Noise == nil || o.Failed {
		return o
	}
	o.Values = slices.Clone(o.Values)
	o.Values[0] += p.Noise(point, o.Values[0]) * noise.NormFloat64()
	return o
}

// Objectives is how many there are.
func (p *Problem) Objectives() int {
	if p.Front != nil {
		return len(p.Front.Reference)
	}
	return 1
}

// All is each function, suite by suite.
func All() []*Problem {
	return slices.Concat(continuousProblems(), mixedProblems(), noisyProblems(), fidelityProblems(), frontProblems())
}

// Find is the problems of the suites whose names match one of the patterns: a
// name, a family, or a prefix with a star. Empty lists mean all, of the suites of
// functions. Of the real tasks there is the development half.
func Find(suites, patterns []string) ([]*Problem, error) {
	var out []*Problem
	used := make([]bool, len(patterns))
	all := All()
	if slices.Contains(suites, Live) || slices.Contains(suites, Tabular) {
		all = append(all, Real(false)...)
	}
	for _, p := range all {
		if len(suites) > 0 && !slices.Contains(suites, p.Suite) {
			continue
		}
		found := len(patterns) == 0
		for i, pattern := range patterns {
			if matches(p, pattern) {
				found, used[i] = true, true
			}
		}
		if found {
			out = append(out, p)
		}
	}
	for i, pattern := range patterns {
		if !used[i] {
			return nil, fmt.Errorf("no problem of the suites %v is called %q; the command list shows what there is", suites, pattern)
		}
	}
	return out, nil
}

func matches(p *Problem, pattern string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(p.Name, prefix)
	}
	return p.Name == pattern || p.Family == pattern
}

// values are the numbers of a point.
func values(p suggest.Point) []float64 {
	x := make([]float64, len(p))
	for i, v := range p {
		x[i] = v.Float()
	}
	return x
}

// single is the outcome of a problem with one objective that never fails.
func single(f func(suggest.Point) float64) func(suggest.Point) Outcome {
	return func(p suggest.Point) Outcome { return Outcome{Values: []float64{f(p)}} }
}

// real is a function of a box in which each coordinate has the same bounds.
type real struct {
	name     string
	family   string
	n        int
	low      float64
	high     float64
	f        func([]float64) float64
	optimum  float64
	solution []float64
}

func (r real) problem(suite string) *Problem {
	p := &Problem{
		Name: r.name, Suite: suite, Family: r.family, Optimum: r.optimum,
		Truth: single(func(p suggest.Point) float64 { return r.f(values(p)) }),
	}
	for i := range r.n {
		p.Parameters = append(p.Parameters, double(coordinate(i), r.low, r.high))
	}
	for i, x := range r.solution {
		p.At = append(p.At, suggest.Assignment{Name: coordinate(i), Value: number(x)})
	}
	return p
}

func coordinate(i int) string { return fmt.Sprintf("x%02d", i) }

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func double(name string, low, high float64) suggest.ParameterSpec {
	return suggest.ParameterSpec{Name: name, Kind: suggest.Double, Min: number(low), Max: number(high)}
}

func logarithmic(name string, low, high float64) suggest.ParameterSpec {
	s := double(name, low, high)
	s.Distribution = suggest.LogUniform
	return s
}

func whole(name string, low, high int) suggest.ParameterSpec {
	return suggest.ParameterSpec{Name: name, Kind: suggest.Int, Min: strconv.Itoa(low), Max: strconv.Itoa(high)}
}

func wholeLog(name string, low, high int) suggest.ParameterSpec {
	s := whole(name, low, high)
	s.Distribution = suggest.LogUniform
	return s
}

func choice(name string, list ...string) suggest.ParameterSpec {
	return suggest.ParameterSpec{Name: name, Kind: suggest.Categorical, List: list}
}

func ordinal(name string, list ...string) suggest.ParameterSpec {
	return suggest.ParameterSpec{Name: name, Kind: suggest.Discrete, List: list}
}

// letters are n choices: a, b, c ...
func letters(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = string(rune('a' + i))
	}
	return out
}

func when(s suggest.ParameterSpec, parameter string, in ...string) suggest.ParameterSpec {
	s.When = &suggest.When{Parameter: parameter, In: in}
	return s
}

// assignments pairs the parameters with values.
func assignments(parameters []suggest.ParameterSpec, values ...string) []suggest.Assignment {
	var out []suggest.Assignment
	for i, v := range values {
		if v != "" {
			out = append(out, suggest.Assignment{Name: parameters[i].Name, Value: v})
		}
	}
	return out
}

// choiceIndex is the position of a categorical's value.
func choiceIndex(v suggest.Value) int {
	i, _ := v.Index()
	return int(i)
}

func square(x float64) float64 { return x * x }

func sumOf(x []float64, f func(float64) float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += f(v)
	}
	return sum
}

// Constraints is how many there are.
func (p *Problem) Constraints() int {
	if p.Front == nil {
		return 0
	}
	return p.Front.Constraints
}

// Steps of a full training; 0 when there are no curves.
func (p *Problem) Steps() int {
	if p.Curve == nil {
		return 0
	}
	return p.Curve.Steps
}
