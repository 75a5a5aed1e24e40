package suggest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of a constraint's text.
const (
	maxExpression = 10_000 // characters
	maxNesting    = 100
)

// ConstraintError says what is wrong with the text of a constraint and what to
// do.
type ConstraintError struct {
	// Text of the constraint.
	Text string
	// Position of the mistake: the character, counted from 1.
	Position int
	// Problem, and what to do about it.
	Problem string
}

// Error shows the place.
func (e *ConstraintError) Error() string {
	const most = 80
	text := []rune(e.Text)
	if len(text) > most {
		from := min(max(e.Position-most/2, 0), len(text)-most)
		text = text[from : from+most]
	}
	return fmt.Sprintf("constraint %q, character %d: %s", string(text), e.Position, e.Problem)
}

func expressionError(text string, offset int, format string, args ...any) *ConstraintError {
	return &ConstraintError{
		Text:     text,
		Position: utf8.RuneCountInString(text[:min(offset, len(text))]) + 1,
		Problem:  fmt.Sprintf(format, args...),
	}
}

// Within is the part of the space in which the i-th parameter, which has finitely many
// values, has one of them, given by its index.
func (s Space) Within(i int, index int64) Space {
	s.constraints = append(slices.Clip(s.constraints), func(p Point) bool {
		at, ok := p[i].Index()
		return ok && at == index
	})
	return s
}

// WithConstraints is the space with conditions on its parameters that each
// point must meet, besides those that it has. The error joins a
// ConstraintError for each text that is wrong.
//
// A constraint compares (<, <=, >, >=, ==, !=) numbers made of parameters,
// constants, + - * / ** and the functions log, log2, log10, exp, sqrt, abs,
// min, max, pow; comparisons may be chained (1 <= a <= b) and combined with
// and, or, not and parentheses. Names that are more than letters, digits and _
// stand in backquotes. A categorical is compared by == and != with a string in
// quotes or another categorical.
//
// A constraint that names a parameter that is not active holds. One that
// divides by zero or leaves the finite numbers does not. Numbers that differ by
// rounding only (16 units in the last place, when one of them is not whole)
// count as equal, so that 0.1+0.2 <= 0.3 holds.
func (s Space) WithConstraints(texts []string) (Space, error) {
	constraints := slices.Clone(s.constraints)
	var errs []error
	for _, text := range texts {
		root, err := parseExpression(text)
		if err == nil {
			err = resolve(text, root, s)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		constraints = append(constraints, compile(root))
	}
	if len(errs) > 0 {
		return Space{}, errors.Join(errs...)
	}
	s.constraints = constraints
	return s, nil
}

// compile is the constraint as a function that allocates nothing.
func compile(root *node) func(Point) bool {
	var named []int
	root.visit(func(n *node) {
		if n.op == opName && !slices.Contains(named, n.index) {
			named = append(named, n.index)
		}
	})
	return func(p Point) bool {
		for _, i := range named {
			if !p[i].IsSet() {
				return true
			}
		}
		truth, defined := root.truth(p)
		return truth && defined
	}
}

// ConstraintNames lists the names that the text of a constraint has, each once,
// in their order. The error is a ConstraintError.
func ConstraintNames(text string) ([]string, error) {
	root, err := parseExpression(text)
	if err != nil {
		return nil, err
	}
	return root.names(), nil
}

func (n *node) names() []string {
	var names []string
	n.visit(func(n *node) {
		if n.op == opName && !slices.Contains(names, n.text) {
			names = append(names, n.text)
		}
	})
	return names
}

// ParseConstraint reads a constraint on a metric, such as latency <= 100 or
// 0.5 <= recall <= 1: bounds that are numbers. Whether a bound is included makes
// no difference. The error is a ConstraintError.
func ParseConstraint(text string) (Constraint, error) {
	root, err := parseExpression(text)
	if err != nil {
		return Constraint{}, err
	}
	names := root.names()
	if len(names) != 1 || root.op != opCompare {
		return Constraint{}, expressionError(text, 0, "a constraint on what is measured bounds one name by numbers; write it like latency <= 100")
	}
	c := Constraint{Name: names[0]}
	for i, op := range root.between {
		left, right := root.args[i], root.args[i+1]
		if left.op != opName {
			left, right, op = right, left, mirrored[op]
		}
		bound := math.NaN()
		if left.op == opName && len(right.names()) == 0 && right.isArithmetic() {
			bound = right.number(nil)
		}
		field := &c.Max
		switch {
		case math.IsNaN(bound):
			return Constraint{}, expressionError(text, right.at, "%s must be compared with a number", names[0])
		case op == opEqual || op == opUnequal:
			return Constraint{}, expressionError(text, root.at, "a measured number is bounded by <= or >=; give a range")
		case op == opGreater || op == opGreaterEqual:
			field = &c.Min
		}
		if *field != nil {
			return Constraint{}, expressionError(text, right.at, "%s has two bounds on the same side; remove one", names[0])
		}
		*field = &bound
	}
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		return Constraint{}, expressionError(text, 0, "the lower bound %v is above the upper bound %v; swap them", *c.Min, *c.Max)
	}
	return c, nil
}

// mirrored is the comparison with its sides swapped.
var mirrored = map[operator]operator{
	opLess: opGreater, opLessEqual: opGreaterEqual, opGreater: opLess, opGreaterEqual: opLessEqual,
	opEqual: opEqual, opUnequal: opUnequal,
}

// resolve finds the parameters that the expression names and checks that
// numbers, categories and conditions stand where they may.
func resolve(text string, root *node, s Space) error {
	r := &resolver{text: text, space: s}
	switch kind := r.check(root); {
	case r.err != nil:
		return r.err
	case kind != isTruth:
		return expressionError(text, root.at, "%s", unfit[kind])
	case len(root.names()) == 0:
		return expressionError(text, 0, "it names no parameter; use some of %s", r.parameters())
	}
	return nil
}

type resolver struct {
	text  string
	space Space
	err   error // the first
}

func (r *resolver) fail(n *node, format string, args ...any) kind {
	if r.err == nil {
		r.err = expressionError(r.text, n.at, format, args...)
	}
	return isNothing
}

// kind of what an expression stands for.
type kind int

const (
	isNothing kind = iota // an error was found
	isNumber
	isCategory
	isTruth
)

func (r *resolver) check(n *node) kind {
	kinds := make([]kind, len(n.args))
	for i, arg := range n.args {
		if kinds[i] = r.check(arg); kinds[i] == isNothing {
			return isNothing
		}
	}
	switch n.op {
	case opConstant:
		return isNumber
	case opText:
		return isCategory
	case opName:
		return r.name(n)
	case opAnd, opOr, opNot:
		return r.all(n, kinds, isTruth, isTruth)
	case opCompare:
		if slices.Contains(kinds, isCategory) {
			return r.categories(n, kinds)
		}
		return r.all(n, kinds, isNumber, isTruth)
	}
	return r.all(n, kinds, isNumber, isNumber)
}

// unfit is what to do with an operand that may not stand where it does.
var unfit = map[kind]string{
	isNumber:   "this is no condition; compare it, as in a <= 10",
	isCategory: "this is a category; compare it by == or != with a string in quotes",
	isTruth:    "this is a condition where a number is needed; combine conditions by and, or, not",
}

// all holds that each operand has the kind want.
func (r *resolver) all(n *node, kinds []kind, want, result kind) kind {
	for i, k := range kinds {
		if k != want {
			return r.fail(n.args[i], "%s", unfit[k])
		}
	}
	return result
}

func (r *resolver) name(n *node) kind {
	i, ok := r.space.Index(n.text)
	if !ok {
		return r.fail(n, "%q is no parameter; use some of %s%s", n.text, r.parameters(), r.hint(n.text))
	}
	n.index = i
	if r.space.parameters[i].kind == Categorical {
		return isCategory
	}
	return isNumber
}

// hint is for a name that may be the beginning of one that needs backquotes.
func (r *resolver) hint(name string) string {
	for _, p := range r.space.parameters {
		if strings.HasPrefix(p.name, name+"-") || strings.HasPrefix(p.name, name+".") {
			return "; a name with a dash or a dot stands in backquotes: `" + p.name + "`"
		}
	}
	return ""
}

func (r *resolver) parameters() string {
	const most = 20
	names := make([]string, 0, most)
	for _, p := range r.space.parameters {
		if len(names) == most {
			names = append(names, "...")
			break
		}
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// categories checks a comparison of categories, and that their values exist.
func (r *resolver) categories(n *node, kinds []kind) kind {
	for i, k := range kinds {
		if k != isCategory {
			return r.fail(n.args[i], "this is compared with a category; write a string in quotes, as in model == 'svm'")
		}
	}
	n.words = true
	for i, op := range n.between {
		if op != opEqual && op != opUnequal {
			return r.fail(n, "categories have no order; compare them by == or !=")
		}
		for _, pair := range [][2]*node{{n.args[i], n.args[i+1]}, {n.args[i+1], n.args[i]}} {
			if pair[0].op != opName || pair[1].op != opText {
				continue
			}
			if p := r.space.parameters[pair[0].index]; !slices.Contains(p.choices, pair[1].text) {
				return r.fail(pair[1], "%q is no value of %s; use one of %s", pair[1].text, p.name, strings.Join(p.choices, ", "))
			}
		}
	}
	return isTruth
}
