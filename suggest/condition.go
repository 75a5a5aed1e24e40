package suggest

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// condition is a When after its names were looked up.
type condition struct {
	parent int
	in     map[int64]bool // indices of the parent's values
}

// link resolves the conditions of the parameters and puts them in an order in
// which each comes after the one that it depends on.
func (s *Space) link(specs []ParameterSpec) (problems SpaceError) {
	for i, spec := range specs {
		if spec.When == nil {
			continue
		}
		c, problem := s.condition(*spec.When)
		if problem != "" {
			problems = append(problems, &ParameterError{Index: i, Name: spec.Name, Field: "when", Problem: problem})
			continue
		}
		s.parameters[i].when = c
		s.conditional = true
	}
	if len(problems) > 0 || !s.conditional {
		return problems
	}
	return s.sort()
}

func (s *Space) condition(w When) (c *condition, problem string) {
	parent, ok := s.byName[w.Parameter]
	if !ok {
		return nil, fmt.Sprintf("names %q, which is no parameter; name one of the space", w.Parameter)
	}
	p := s.parameters[parent]
	if p.count == 0 {
		return nil, fmt.Sprintf("depends on %q, which is continuous; depend on a categorical, discrete or int, or give it a step", w.Parameter)
	}
	if len(w.In) == 0 {
		return nil, fmt.Sprintf("lists no value of %q; give at least one", w.Parameter)
	}
	c = &condition{parent: parent, in: make(map[int64]bool, len(w.In))}
	for _, text := range w.In {
		v, ok := p.Parse(text)
		if !ok {
			return nil, fmt.Sprintf("has %s, which is no value of %q; correct or remove it", strconv.Quote(text), w.Parameter)
		}
		c.in[v.index] = true
	}
	return c, ""
}

// sort fills order, and finds parameters that depend on each other in a circle.
func (s *Space) sort() (problems SpaceError) {
	const (
		untouched = iota
		open
		done
	)
	state := make([]int, len(s.parameters))
	var visit func(i int) bool
	visit = func(i int) bool {
		if state[i] != untouched {
			return state[i] == done
		}
		state[i] = open
		if w := s.parameters[i].when; w != nil && !visit(w.parent) {
			return false
		}
		state[i] = done
		s.order = append(s.order, i)
		return true
	}
	for i := range s.parameters {
		if state[i] == untouched && !visit(i) {
			return SpaceError{{
				Index: i, Name: s.parameters[i].name, Field: "when",
				Problem: "depends on itself through other parameters; break the circle",
			}}
		}
	}
	return nil
}

// Conditional says whether a parameter of the space is active only for some
// values of another.
func (s Space) Conditional() bool { return s.conditional }

// ParentsFirst are the positions of the parameters, each after the one that it
// depends on.
func (s Space) ParentsFirst() []int {
	if s.conditional {
		return slices.Clone(s.order)
	}
	order := make([]int, len(s.parameters))
	for i := range order {
		order[i] = i
	}
	return order
}

// When gives the position in the space of the parameter that decides whether
// this one is active. ok is false when it is always active.
func (p Parameter) When() (parent int, ok bool) {
	if p.when == nil {
		return 0, false
	}
	return p.when.parent, true
}

// ActiveFor says whether the parameter is active when the one that it depends
// on is active and has the value v. It is true for one that is always active.
func (p Parameter) ActiveFor(v Value) bool {
	return p.when == nil || v.in && p.when.in[v.index]
}

// active says whether the i-th parameter is active at p, of which the
// parameters that come before in order must be settled.
func (s Space) active(i int, p Point) bool {
	w := s.parameters[i].when
	return w == nil || s.parameters[i].ActiveFor(p[w.parent])
}

// Settle removes, in place, the values of parameters that are not active at p,
// a point of this space.
func (s Space) Settle(p Point) {
	for _, i := range s.order {
		if !s.active(i, p) {
			p[i] = Value{}
		}
	}
}

// Active says for each parameter whether it is active at p, which must be a
// point of this space, though the values of inactive parameters may be set.
func (s Space) Active(p Point) []bool {
	active := make([]bool, len(s.parameters))
	if !s.conditional {
		for i := range active {
			active[i] = true
		}
		return active
	}
	for _, i := range s.order {
		w := s.parameters[i].when
		active[i] = w == nil || active[w.parent] && s.parameters[i].ActiveFor(p[w.parent])
	}
	return active
}

// Size is how many points there are, with those that parameter constraints
// forbid; finite is false when a parameter is continuous. A size of
// math.MaxUint64 means that many or more.
func (s Space) Size() (n uint64, finite bool) {
	sizes := make([]map[int64]uint64, len(s.parameters)) // by the parent's value: the product over its children
	order := s.ParentsFirst()
	n = 1
	for k := len(order) - 1; k >= 0; k-- { // children first
		i := order[k]
		p := s.parameters[i]
		if p.count == 0 {
			return 0, false
		}
		size := uint64(p.count) - uint64(len(sizes[i]))
		for _, below := range sizes[i] {
			size = add(size, below)
		}
		if p.when == nil {
			n = multiply(n, size)
			continue
		}
		above := &sizes[p.when.parent]
		if *above == nil {
			*above = map[int64]uint64{}
		}
		for v := range p.when.in {
			(*above)[v] = multiply(max(1, (*above)[v]), size)
		}
	}
	return n, true
}

func multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}

func add(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// First is the point of a finite space in which each parameter has its first
// value.
func (s Space) First() Point {
	p := make(Point, len(s.parameters))
	for i := range p {
		p[i] = s.parameters[i].At(0)
	}
	s.Settle(p)
	return p
}

// Successor is the point after p in a cycle through all points of a finite
// space, those that constraints forbid included.
func (s Space) Successor(p Point) Point {
	next := append(Point(nil), p...)
	for k := len(p) - 1; k >= 0; k-- { // children first, so that they start anew when their parent moves on
		i := k
		if s.conditional {
			i = s.order[k]
		}
		if !p[i].in {
			continue
		}
		if v := p[i].index + 1; v < s.parameters[i].count {
			next[i] = s.parameters[i].At(v)
			break
		}
		next[i] = s.parameters[i].At(0)
	}
	for _, i := range s.order {
		switch {
		case !s.active(i, next):
			next[i] = Value{}
		case !next[i].in:
			next[i] = s.parameters[i].At(0)
		}
	}
	return next
}
