package lines

import (
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
	var s suggest.Study
	parameters := f.list("parameters")
	s.Objectives = f.objectives()
	constraints := f.list("constraints")
	s.Budget, _ = f.whole("budget")
	s.Parallel, _ = f.whole("parallel")
	initial, warm := f.list("initial"), f.list("warm")
	if err := f.end(); err != nil {
		return suggest.Study{}, err
	}
	if s.Space, err = readParameters(parameters); err != nil {
		return suggest.Study{}, err
	}
	if err := readConstraints(&s, constraints); err != nil {
		return suggest.Study{}, err
	}
	if s.Initial, err = readInitial(s.Space, initial); err != nil {
		return suggest.Study{}, err
	}
	if err := readWarm(&s, warm); err != nil {
		return suggest.Study{}, err
	}
	return s, nil
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
			f.fail("%w", err)
			return nil
		}
		out[i] = suggest.Objective{Name: g.word("name"), Direction: suggest.Direction(g.word("type"))}
		if goal, given := g.finite("goal"); given {
			out[i].Goal = &goal
		}
		switch out[i].Direction {
		case "":
			out[i].Direction = suggest.Minimize
		case suggest.Minimize, suggest.Maximize:
		default:
			g.fail("%s is %s; it must be minimize or maximize", g.path("type"), strconv.Quote(string(out[i].Direction)))
		}
		if err := g.end(); err != nil {
			f.fail("%w", err)
		}
	}
	return out
}

func readParameters(items []any) (suggest.Space, error) {
	if len(items) == 0 {
		return suggest.Space{}, fmt.Errorf("parameters is missing or empty; list what is to be searched")
	}
	specs := make([]suggest.ParameterSpec, len(items))
	for i, item := range items {
		f, err := newFields(fmt.Sprintf("parameters[%d]", i), item)
		if err != nil {
			return suggest.Space{}, err
		}
		specs[i] = suggest.ParameterSpec{
			Name: f.word("name"), Kind: f.kind(),
			Min: f.text("min"), Max: f.text("max"), Step: f.text("step"),
			List: f.texts("list"), Distribution: suggest.Distribution(f.word("distribution")),
		}
		specs[i].When = f.when()
		if err := f.end(); err != nil {
			return suggest.Space{}, err
		}
	}
	return suggest.NewSpace(specs)
}

func (f *fields) kind() suggest.Kind {
	kinds := []string{string(suggest.Double), string(suggest.Int), string(suggest.Discrete), string(suggest.Categorical)}
	word := f.word("type")
	if !slices.Contains(kinds, word) {
		f.fail("%s is %s; it must be one of %s", f.path("type"), strconv.Quote(shorten(word)), strings.Join(kinds, ", "))
	}
	return suggest.Kind(word)
}

func (f *fields) when() *suggest.When {
	v, ok := f.take("when")
	if !ok {
		return nil
	}
	g, err := newFields(f.path("when"), v)
	if err != nil {
		f.fail("%w", err)
		return nil
	}
	w := &suggest.When{Parameter: g.word("parameter"), In: g.texts("in")}
	if err := g.end(); err != nil {
		f.fail("%w", err)
	}
	return w
}

// readConstraints reads the constraints, on parameters and on what is measured.
func readConstraints(s *suggest.Study, items []any) error {
	var onParameters []string
	for i, item := range items {
		where := fmt.Sprintf("constraints[%d]", i)
		if text, ok := item.(string); ok {
			isOne, err := onlyNamesParameters(s.Space, where, text)
			if err != nil {
				return err
			}
			if isOne {
				onParameters = append(onParameters, text)
				continue
			}
		}
		c, err := readConstraint(where, item)
		if err != nil {
			return err
		}
		s.Constraints = append(s.Constraints, c)
	}
	space, err := s.Space.WithConstraints(onParameters)
	if err != nil {
		return err
	}
	s.Space = space
	return nil
}

// onlyNamesParameters says whether a constraint is one on parameters. It may
// not name both parameters and what is measured.
func onlyNamesParameters(space suggest.Space, where, text string) (bool, error) {
	names, err := suggest.ConstraintNames(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", where, err)
	}
	var known, unknown string
	for _, name := range names {
		if _, ok := space.Index(name); ok {
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
func readConstraint(where string, item any) (suggest.Constraint, error) {
	if text, ok := item.(string); ok {
		c, err := suggest.ParseConstraint(text)
		if err != nil {
			return c, fmt.Errorf("%s: %w", where, err)
		}
		return c, nil
	}
	f, err := newFields(where, item)
	if err != nil {
		return suggest.Constraint{}, fmt.Errorf("%w, or a string such as \"a + b <= 10\"", err)
	}
	c := suggest.Constraint{Name: f.word("name")}
	if low, given := f.finite("min"); given {
		c.Min = &low
	}
	if high, given := f.finite("max"); given {
		c.Max = &high
	}
	if c.Name == "" {
		f.fail("%s is missing; name what is measured", f.path("name"))
	}
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		f.fail("%s is above max; swap them", f.path("min"))
	}
	return c, f.end()
}

func readInitial(space suggest.Space, items []any) ([]suggest.Point, error) {
	points := make([]suggest.Point, 0, len(items))
	for i, item := range items {
		where := fmt.Sprintf("initial[%d]", i)
		params, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is %s; it must be an object of names and values", where, describe(item))
		}
		p, inside, why := point(space, where, params)
		if !inside {
			return nil, why
		}
		points = append(points, p)
	}
	return points, nil
}

// readWarm reads trials of other studies. Their points may lie outside of the
// space, and are then known as far as the space can say them.
func readWarm(s *suggest.Study, items []any) error {
	for i, item := range items {
		f, err := newFields(fmt.Sprintf("warm[%d]", i), item)
		if err != nil {
			return err
		}
		t := readTold(f, len(s.Objectives))
		study := f.word("study")
		if study == "" {
			f.fail("%s is missing; name the study that the trial is of, as values of different studies are not compared", f.path("study"))
		}
		if !t.state.Finished() {
			f.fail("%s is %s; only trials that have ended are a warm start", f.path("state"), t.state)
		}
		if err := f.end(); err != nil {
			return err
		}
		trial := suggest.Trial{
			Number: i, State: t.state, Values: t.values, Constraints: t.constraints,
			Curve: t.curve, Resource: t.resource, Meta: suggest.Meta{},
		}
		maps.Copy(trial.Meta, t.meta)
		trial.Meta["study"] = study
		if t.numbered {
			trial.Number = t.number
		}
		if s.Constraints, err = counted(s.Constraints, t); err != nil {
			return err
		}
		p, _, why := point(s.Space, f.path("params"), t.params)
		if p == nil {
			return why
		}
		trial.Point = p
		trial.Values = valuesOf(trial, len(s.Objectives))
		s.Warm = append(s.Warm, trial)
	}
	return nil
}
