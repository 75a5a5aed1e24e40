package lines

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
)

// maxSpace is how many bytes a space file may have.
const maxSpace = 64 << 20

// ReadStudy reads a space file: what is searched, and how trials are judged.
// The study has no trials and the seed 0. docs/optimize.md describes the file.
// What is wrong with a file of JSON comes all at once, as a SpaceFileError.
func ReadStudy(r io.Reader) (suggest.Study, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSpace+1))
	switch {
	case err != nil:
		return suggest.Study{}, fmt.Errorf("read the space: %w", err)
	case len(data) > maxSpace:
		return suggest.Study{}, fmt.Errorf("the space is larger than %d bytes", maxSpace)
	}
	v, err := decode(data)
	if err != nil {
		return suggest.Study{}, fmt.Errorf("the space is no JSON: %w", err)
	}
	f, err := newFields("the space", v)
	if err != nil {
		return suggest.Study{}, err
	}
	f.where = ""
	file := spaceFile{}
	parameters, _, ok := read(f, "parameters", "a list", as[[]any])
	if ok && len(parameters) == 0 {
		f.fail("%s is missing or empty; list what is to be searched", f.path("parameters"))
	}
	file.study.Objectives = f.objectives()
	constraints := f.list("constraints")
	file.study.Budget, _ = f.whole("budget")
	file.study.Parallel, _ = f.whole("parallel")
	file.study.Repeats, _, _ = read(f, "repeats", "true or false", as[bool])
	initial, warm := f.list("initial"), f.list("warm")
	file.wrong = f.faults()
	file.parameters(parameters)
	file.constraints(constraints)
	file.initial(initial)
	file.warm(warm)
	if len(file.wrong) > 0 {
		return suggest.Study{}, file.wrong
	}
	return file.study, nil
}

// spaceFile is a space file as far as it was read.
type spaceFile struct {
	study suggest.Study
	wrong SpaceFileError
	// searchable: the parameters are right, so that what speaks of them can be
	// checked.
	searchable bool
	// bounded: the constraints are right too.
	bounded bool
}

// objectives reads the objectives; without any there is one to minimize.
func (f *fields) objectives() []suggest.Objective {
	items := f.list("objectives")
	if len(items) == 0 {
		return []suggest.Objective{{Name: "objective", Direction: suggest.Minimize}}
	}
	out := make([]suggest.Objective, len(items))
	for i, item := range items {
		g, err := newFields(fmt.Sprintf("objectives[%d]", i), item)
		if err != nil {
			f.errs.add(err)
			continue
		}
		name, _ := g.word("name")
		direction, _ := g.word("type")
		out[i] = suggest.Objective{Name: name, Direction: suggest.Direction(direction), Goal: g.finite("goal")}
		switch out[i].Direction {
		case "":
			out[i].Direction = suggest.Minimize
		case suggest.Minimize, suggest.Maximize:
		default:
			g.fail("%s is %s; it must be minimize or maximize", g.path("type"), strconv.Quote(direction))
		}
		f.errs = append(f.errs, g.faults()...)
	}
	return out
}

// parameters reads the parameters. Of one that cannot be read nothing else is
// said.
func (s *spaceFile) parameters(items []any) {
	specs, unread := make([]suggest.ParameterSpec, len(items)), make([]bool, len(items))
	for i, item := range items {
		f, err := newFields(fmt.Sprintf("parameters[%d]", i), item)
		if err != nil {
			s.wrong.add(err)
			unread[i] = true
			continue
		}
		name, _ := f.word("name")
		kind := f.kind()
		specs[i] = suggest.ParameterSpec{Name: name, Kind: kind, Min: f.text("min"), Max: f.text("max"), Step: f.text("step"), List: f.texts("list")}
		distribution, _ := f.word("distribution")
		specs[i].Distribution, specs[i].Prior, specs[i].When = suggest.Distribution(distribution), f.prior(), f.when()
		unread[i] = len(f.faults()) > 0
		s.wrong = append(s.wrong, f.faults()...)
	}
	space, err := suggest.NewSpace(specs)
	var problems suggest.SpaceError
	if errors.As(err, &problems) {
		for _, p := range problems {
			if !unread[p.Index] {
				s.wrong.add(p)
			}
		}
	} else {
		s.wrong.add(err)
	}
	s.study.Space = space
	s.searchable = err == nil && len(items) > 0 && !slices.Contains(unread, true)
}

func (f *fields) kind() suggest.Kind {
	kinds := []string{string(suggest.Double), string(suggest.Int), string(suggest.Discrete), string(suggest.Categorical)}
	word, ok := f.word("type")
	if ok && !slices.Contains(kinds, word) {
		f.fail("%s is %s; it must be one of %s", f.path("type"), strconv.Quote(shorten(word)), strings.Join(kinds, ", "))
	}
	return suggest.Kind(word)
}

func (f *fields) prior() *suggest.Prior {
	v, ok := f.take("prior")
	if !ok {
		return nil
	}
	g, err := newFields(f.path("prior"), v)
	if err != nil {
		f.errs.add(err)
		return nil
	}
	p := &suggest.Prior{Value: g.text("value"), Spread: g.text("spread"), Weights: g.texts("weights")}
	f.errs = append(f.errs, g.faults()...)
	return p
}

func (f *fields) when() *suggest.When {
	v, ok := f.take("when")
	if !ok {
		return nil
	}
	g, err := newFields(f.path("when"), v)
	if err != nil {
		f.errs.add(err)
		return nil
	}
	parameter, _ := g.word("parameter")
	w := &suggest.When{Parameter: parameter, In: g.texts("in")}
	f.errs = append(f.errs, g.faults()...)
	return w
}

// constraints reads the constraints, on parameters and on what is measured.
func (s *spaceFile) constraints(items []any) {
	known := len(s.wrong)
	var onParameters []string
	for i, item := range items {
		where := fmt.Sprintf("constraints[%d]", i)
		if text, ok := item.(string); ok {
			isOne, err := s.onlyNamesParameters(where, text)
			if err != nil {
				s.wrong.add(err)
				continue
			}
			if isOne {
				onParameters = append(onParameters, text)
				continue
			}
			if !s.searchable {
				continue // it may be one on parameters that are wrong
			}
		}
		c, wrong := readConstraint(where, item)
		s.wrong = append(s.wrong, wrong...)
		s.study.Constraints = append(s.study.Constraints, c)
	}
	if s.searchable {
		if space, err := s.study.Space.WithConstraints(onParameters); err != nil {
			s.wrong.add(err)
		} else {
			s.study.Space = space
		}
	}
	s.bounded = s.searchable && len(s.wrong) == known
}

// onlyNamesParameters says whether a constraint is one on parameters. It may
// not name both parameters and what is measured.
func (s *spaceFile) onlyNamesParameters(where, text string) (bool, error) {
	names, err := suggest.ConstraintNames(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", where, err)
	}
	var known, unknown string
	for _, name := range names {
		if _, ok := s.study.Space.Index(name); ok {
			known = name
		} else {
			unknown = name
		}
	}
	if known != "" && unknown != "" {
		return false, fmt.Errorf("%s: %q names the parameter %s and also %s, which is none; correct it, or write one constraint on parameters and one on what is measured",
			where, shorten(text), known, unknown)
	}
	return unknown == "", nil
}

// readConstraint reads a constraint on what is measured.
func readConstraint(where string, item any) (c suggest.Constraint, wrong SpaceFileError) {
	if text, ok := item.(string); ok {
		c, err := suggest.ParseConstraint(text)
		if err != nil {
			wrong.add(fmt.Errorf("%s: %w", where, err))
		}
		return c, wrong
	}
	f, err := newFields(where, item)
	if err != nil {
		wrong.add(fmt.Errorf("%w, or a string such as \"a + b <= 10\"", err))
		return c, wrong
	}
	name, ok := f.word("name")
	c.Name = name
	c.Min, c.Max = f.finite("min"), f.finite("max")
	if ok && c.Name == "" {
		f.fail("%s is missing; name what is measured", f.path("name"))
	}
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		f.fail("%s is above max; swap them", f.path("min"))
	}
	return c, f.faults()
}

// initial reads the points that are tried first.
func (s *spaceFile) initial(items []any) {
	s.study.Initial = make([]suggest.Point, 0, len(items))
	for i, item := range items {
		where := fmt.Sprintf("initial[%d]", i)
		params, ok := item.(map[string]any)
		if !ok {
			s.wrong.add(fmt.Errorf("%s is %s; it must be an object of names and values", where, describe(item)))
			continue
		}
		if !s.searchable {
			continue
		}
		p, inside, why := point(s.study.Space, where, params)
		if !inside {
			s.wrong.add(why)
		}
		s.study.Initial = append(s.study.Initial, p)
	}
}

// warm reads trials of other studies. Their points may lie outside of the space,
// and are then known as far as the space can say them.
func (s *spaceFile) warm(items []any) {
	for i, item := range items {
		f, err := newFields(fmt.Sprintf("warm[%d]", i), item)
		if err != nil {
			s.wrong.add(err)
			continue
		}
		t := readTold(f, len(s.study.Objectives))
		study, ok := f.word("study")
		if ok && study == "" {
			f.fail("%s is missing; name the study that the trial is of, as values of different studies are not compared", f.path("study"))
		}
		if !t.state.Finished() {
			f.fail("%s is %s; only trials that have ended are a warm start", f.path("state"), t.state)
		}
		wrong := f.faults()
		s.wrong = append(s.wrong, wrong...)
		if len(wrong) == 0 {
			s.known(i, f, t, study)
		}
	}
}

// known takes in a trial of a warm start that could be read.
func (s *spaceFile) known(i int, f *fields, t told, study string) {
	trial := &suggest.Trial{
		Number: i, State: t.state, Values: t.values, Constraints: t.constraints,
		Curve: t.curve, Meta: suggest.Meta{},
	}
	maps.Copy(trial.Meta, t.meta)
	trial.Meta["study"] = study
	if t.resource != nil {
		trial.Resource = *t.resource
	}
	if t.numbered {
		trial.Number = t.number
	}
	if s.bounded {
		if constraints, err := counted(s.study.Constraints, t); err != nil {
			s.wrong.add(err)
		} else {
			s.study.Constraints = constraints
		}
	}
	if !s.searchable {
		return
	}
	p, _, why := point(s.study.Space, f.path("params"), t.params)
	if p == nil {
		s.wrong.add(why)
		return
	}
	trial.Point = p
	trial.Values = s.study.ValuesOf(trial)
	s.study.Warm = append(s.study.Warm, trial)
}
