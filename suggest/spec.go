package suggest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ParameterSpec is a parameter as the user writes it: numbers are strings.
type ParameterSpec struct {
	// Name of the parameter.
	Name string
	// Kind of the parameter.
	Kind Kind
	// Min and Max are the bounds of a double or int, both included.
	Min, Max string
	// Step between the values of a double or int, counted from Min. Empty: 1
	// for an int, none for a double.
	Step string
	// List holds the values of a discrete or categorical.
	List []string
	// Distribution of a double or int. Empty or "unknown": Uniform.
	Distribution Distribution
	// Prior is where good values are believed to be. Nil: nowhere in particular.
	Prior *Prior
	// When says for which values of another parameter this one is active. Nil:
	// always.
	When *When
}

// When makes a parameter conditional: it is active, and has a value, only when
// the other parameter is active and has one of the values.
type When struct {
	// Parameter that decides; it has finitely many values.
	Parameter string
	// In lists its values, at least one.
	In []string
}

// ParameterError says what is wrong with one parameter and what to do.
type ParameterError struct {
	// Index of the parameter in the list.
	Index int
	// Name of the parameter; may be empty.
	Name string
	// Field at fault: name, kind, min, max, step, list, distribution, prior or when.
	Field string
	// Problem, and what to do about it.
	Problem string
}

// Error names the parameter and the field.
func (e *ParameterError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("parameter number %d: %s %s", e.Index+1, e.Field, e.Problem)
	}
	return fmt.Sprintf("parameter %q: %s %s", e.Name, e.Field, e.Problem)
}

// SpaceError is all that is wrong with a space. Find it with errors.As.
type SpaceError []*ParameterError

// Error lists the problems.
func (e SpaceError) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "; ")
}

// Unwrap gives the single problems.
func (e SpaceError) Unwrap() []error {
	errs := make([]error, len(e))
	for i, p := range e {
		errs[i] = p
	}
	return errs
}

// NewSpace builds a space from what the user wrote. The error, if any, is a
// SpaceError that lists each problem. A space without parameters is allowed:
// it has one point, the empty one.
func NewSpace(specs []ParameterSpec) (Space, error) {
	s := Space{
		parameters: make([]Parameter, 0, len(specs)),
		byName:     make(map[string]int, len(specs)),
	}
	var problems SpaceError
	for i, spec := range specs {
		r := reader{index: i, spec: spec}
		if spec.Name == "" {
			r.fail("name", "is empty; give the parameter a name")
		} else if first, ok := s.byName[spec.Name]; ok {
			r.fail("name", "is used by parameter number %d already; rename one of them", first+1)
		} else {
			s.byName[spec.Name] = i
		}
		s.parameters = append(s.parameters, r.parameter())
		problems = append(problems, r.problems...)
	}
	if len(problems) == 0 {
		problems = s.link(specs)
	}
	if len(problems) > 0 {
		return Space{}, problems
	}
	return s, nil
}

// reader turns one spec into a parameter and collects what is wrong.
type reader struct {
	index    int
	spec     ParameterSpec
	problems SpaceError
}

func (r *reader) fail(field, format string, args ...any) {
	r.problems = append(r.problems, &ParameterError{
		Index: r.index, Name: r.spec.Name, Field: field, Problem: fmt.Sprintf(format, args...),
	})
}

func (r *reader) parameter() Parameter {
	p := Parameter{name: r.spec.Name, kind: r.spec.Kind, distribution: r.spec.Distribution}
	switch p.distribution {
	case "", "unknown":
		p.distribution = Uniform
	case Uniform, LogUniform, Normal, LogNormal:
	default:
		r.fail("distribution", "%q is unknown; use uniform, logUniform, normal or logNormal", p.distribution)
	}
	switch p.kind {
	case Double, Int:
		r.forbid("list", len(r.spec.List) > 0, "give min and max")
		r.numeric(&p)
	case Discrete, Categorical:
		r.forbid("min", r.spec.Min != "", "give a list")
		r.forbid("max", r.spec.Max != "", "give a list")
		r.forbid("step", r.spec.Step != "", "give a list")
		r.list(&p)
	default:
		r.fail("kind", "%q is unknown; use double, int, discrete or categorical", p.kind)
	}
	if len(r.problems) == 0 {
		r.believe(&p)
	}
	return p
}

func (r *reader) forbid(field string, given bool, instead string) {
	if given {
		r.fail(field, "is not for a parameter of kind %s; remove it and %s", r.spec.Kind, instead)
	}
}

// number reads one of the fields; ok is false when it failed.
func (r *reader) number(field, text string) (n number, ok bool) {
	if text == "" {
		r.fail(field, "is missing; a parameter of kind %s needs it", r.spec.Kind)
		return n, false
	}
	n, err := parseNumber(text)
	if err != nil {
		r.fail(field, "%q is not a finite number; write it like 0.01, 1e-3 or 10", text)
		return n, false
	}
	if r.spec.Kind == Int && !n.isWhole() {
		r.fail(field, "%q is not a whole number from -2^53 to 2^53; round it, or use the kind double", text)
		return n, false
	}
	return n, true
}

func (r *reader) numeric(p *Parameter) {
	lo, okMin := r.number("min", r.spec.Min)
	hi, okMax := r.number("max", r.spec.Max)
	step, stepped := number{value: 1, exact: true, coefficient: 1}, p.kind == Int
	if r.spec.Step != "" {
		stepped = true
		var ok bool
		if step, ok = r.number("step", r.spec.Step); ok && step.value <= 0 {
			r.fail("step", "%q is not above zero; give a positive step or leave it out", r.spec.Step)
		}
	}
	if !okMin || !okMax || len(r.problems) > 0 {
		return
	}
	p.min, p.max = lo.value, hi.value
	switch {
	case p.min > p.max:
		r.fail("min", "%s is above max %s; swap them", r.spec.Min, r.spec.Max)
	case math.IsInf(p.max-p.min, 0):
		r.fail("max", "is too far from min for a double; narrow the range or use logUniform on positive numbers")
	case (p.distribution == LogUniform || p.distribution == LogNormal) && p.min <= 0:
		r.fail("min", "%s is not above zero, as the distribution %s needs it; raise min or use %s",
			r.spec.Min, p.distribution, linear(p.distribution))
	case stepped:
		r.stepped(p, lo, step, hi)
	default:
		r.continuous(p)
	}
}

func linear(d Distribution) Distribution {
	if d == LogNormal {
		return Normal
	}
	return Uniform
}

func (r *reader) continuous(p *Parameter) {
	if p.min == p.max {
		p.count = 1
		return
	}
	p.scale = newScale(p.distribution, p.min, p.max, p.max, 0)
	if !p.scale.usable() {
		r.fail("max", "%s is too close to min %s to tell values apart; widen the range or make them equal", r.spec.Max, r.spec.Min)
	}
}

func (r *reader) stepped(p *Parameter, lo, step, hi number) {
	if step.value < 4*ulp(math.Max(math.Abs(p.min), math.Abs(p.max))) {
		r.fail("step", "%s is finer than can be told apart between min and max; %s", r.step(), r.coarser())
		return
	}
	var count float64
	p.grid, count = newGrid(lo, step, hi, p.kind == Int)
	p.count = int64(count)
	if p.count > 1 {
		p.scale = newScale(p.distribution, p.grid.lo, p.grid.at(p.count-1), p.max, p.grid.step)
		if !p.scale.usable() {
			r.fail("step", "%s is too fine for the size of min and max; %s", r.step(), r.coarser())
		}
	}
}

// step is the step as the user knows it.
func (r *reader) step() string {
	if r.spec.Step == "" {
		return "1 (the default)"
	}
	return r.spec.Step
}

func (r *reader) coarser() string {
	if r.spec.Kind == Int {
		return "give a larger step or a narrower range"
	}
	return "give a larger step or leave it out"
}

func (r *reader) list(p *Parameter) {
	if len(r.spec.List) == 0 {
		r.fail("list", "is empty; give at least one value")
		return
	}
	p.choices = slices.Clone(r.spec.List)
	p.count = int64(len(p.choices))
	if p.kind == Categorical {
		seen := make(map[string]bool, len(p.choices))
		for _, c := range p.choices {
			if seen[c] {
				r.fail("list", "has %q twice; remove one", c)
			}
			seen[c] = true
		}
		return
	}
	r.discrete(p)
}

// discrete sorts the choices by number.
func (r *reader) discrete(p *Parameter) {
	byNumber := make(map[float64]string, len(p.choices))
	for _, c := range p.choices {
		n, err := parseNumber(c)
		if err != nil {
			r.fail("list", "has %q, which is not a finite number; correct it, or use the kind categorical", c)
			continue
		}
		f := n.value
		if first, ok := byNumber[f]; ok {
			r.fail("list", "has %s and %s, which are the same number; remove one", strconv.Quote(first), strconv.Quote(c))
			continue
		}
		byNumber[f] = c
		p.numbers = append(p.numbers, f)
	}
	if len(r.problems) > 0 {
		return
	}
	slices.Sort(p.numbers)
	for i, f := range p.numbers {
		p.choices[i] = byNumber[f]
	}
	p.min, p.max = p.numbers[0], p.numbers[len(p.numbers)-1]
}
