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
	constraints := s.study.Constraints
	next := s.next
	changed := make([]suggest.Trial, 0, len(all))
	before := map[int]int{} // positions in changed by number
	for _, t := range all {
		if !t.numbered {
			t.number = next
			assigned = append(assigned, next)
		}
		base, known := suggest.Trial{Number: t.number}, false
		if i, ok := before[t.number]; ok {
			base, known = changed[i], true
		} else if i, ok := s.index[t.number]; ok {
			base, known = s.study.Trials[i], true
		}
		trial, err := s.apply(t, base, known)
		if err != nil {
			return nil, err
		}
		if constraints, err = counted(constraints, t); err != nil {
			return nil, err
		}
		before[t.number] = len(changed)
		changed = append(changed, trial)
		next = max(next, t.number+1)
	}
	s.study.Constraints = constraints
	for _, trial := range changed {
		s.put(trial)
	}
	s.settle()
	return assigned, nil
}

// apply changes a trial to what is said of it.
func (s *Session) apply(t told, base suggest.Trial, known bool) (suggest.Trial, error) {
	switch {
	case t.params != nil:
		p, inside, why := point(s.study.Space, t.where+".params", t.params)
		if !inside {
			return base, why
		}
		base.Point = p
	case !t.numbered:
		return base, fmt.Errorf("%s has neither number nor params; give the number that ask answered", t.where)
	case !known:
		return base, fmt.Errorf("%s.number is %d, and there is no such trial; correct it, or add params to tell a trial that was not asked for here", t.where, t.number)
	}
	if t.number > maxNumber {
		return base, fmt.Errorf("%s would get a number above %d; number the trials from 0", t.where, maxNumber)
	}
	base.State, base.Values, base.Constraints = t.state, t.values, t.constraints
	if t.curved {
		base.Curve = t.curve
	}
	if t.meta != nil {
		base.Meta = t.meta
	}
	if t.resourced {
		base.Resource = t.resource
	}
	base.Values = valuesOf(base, len(s.study.Objectives))
	return base, nil
}

// valuesOf are the trial's values: for a pruned one without any, the end of its
// curve.
func valuesOf(t suggest.Trial, objectives int) []float64 {
	if n := len(t.Curve); t.State == suggest.Pruned && len(t.Values) == 0 && n > 0 && objectives == 1 {
		return []float64{t.Curve[n-1].Value}
	}
	return t.Values
}

// counted holds that a trial has as many constraints as the study. In a study
// that names none, the first trial that has some decides how many there are,
// and each must be at most 0.
func counted(constraints []suggest.Constraint, t told) ([]suggest.Constraint, error) {
	switch n := len(t.constraints); {
	case n == 0 && !t.measured, n == len(constraints):
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
