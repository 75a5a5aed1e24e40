package lines

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
)

// tell takes over what is said of trials: all of it or, with an error, nothing.
// assigned are the numbers of the trials that came without one.
func (s *Session) tell(all []told) (assigned []int, err error) {
	constraints := s.session.Study.Constraints
	next := s.session.Study.NextNumber()
	changed := map[int]*suggest.Trial{} // by number
	for _, t := range all {
		if !t.numbered {
			t.number = next
			assigned = append(assigned, next)
		}
		before := changed[t.number]
		if before == nil {
			before = s.session.Study.Trial(t.number)
		}
		if changed[t.number], err = s.apply(t, before); err != nil {
			return nil, err
		}
		if constraints, err = counted(constraints, t); err != nil {
			return nil, err
		}
		next = max(next, t.number+1)
	}
	s.session.Study.Constraints = constraints
	s.session.Study.Put(slices.Collect(maps.Values(changed))...)
	return assigned, nil
}

// apply makes a trial of what is said of it and of how it was before, if it was.
func (s *Session) apply(t told, before *suggest.Trial) (*suggest.Trial, error) {
	after := suggest.Trial{Number: t.number}
	if before != nil {
		after = *before
	}
	switch {
	case t.params != nil:
		p, inside, why := point(s.session.Study.Space, t.where+".params", t.params)
		if !inside {
			return nil, why
		}
		after.Point = p
	case !t.numbered:
		return nil, fmt.Errorf("%s has neither number nor params; give the number that ask answered", t.where)
	case before == nil:
		return nil, fmt.Errorf("%s.number is %d, and there is no such trial; correct it, or add params to tell a trial that was not asked for here", t.where, t.number)
	}
	if t.number > maxNumber {
		return nil, fmt.Errorf("%s would get a number above %d; number the trials from 0", t.where, maxNumber)
	}
	after.State, after.Values, after.Constraints = t.state, t.values, t.constraints
	if t.curve != nil {
		after.Curve = slices.Concat(t.curve) // nil when it is empty
	}
	if t.meta != nil {
		after.Meta = t.meta
	}
	if t.resource != nil {
		after.Resource = *t.resource
	}
	if t.duration != nil {
		after.Duration = *t.duration
	}
	after.Values = s.session.Study.ValuesOf(&after)
	return &after, nil
}

// counted holds that a trial has as many constraints as the study. In a study
// that names none, the first trial that has some decides how many there are,
// and each must be at most 0.
func counted(constraints []suggest.Constraint, t told) ([]suggest.Constraint, error) {
	switch n := len(t.constraints); {
	case t.constraints == nil, n == len(constraints):
		return constraints, nil
	case n > 0 && len(constraints) == 0:
		for i := range n {
			constraints = append(constraints, suggest.Constraint{Name: fmt.Sprintf("constraint %d", i+1)})
		}
		return constraints, nil
	default:
		return nil, fmt.Errorf("%s has %s; it must have %d%s", t.where, plural(n, "constraint"), len(constraints), named(constraints))
	}
}

func named(constraints []suggest.Constraint) string {
	if len(constraints) == 0 {
		return ""
	}
	names := make([]string, len(constraints))
	for i, c := range constraints {
		names[i] = c.Name
	}
	return ", in the order " + strings.Join(names, ", ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
