package suggest

import (
	"encoding/binary"
	"math"
)

// Space is what is searched: parameters in the user's order. It is valid by
// construction, never changes, and may be shared. The zero Space has no
// parameters.
type Space struct {
	parameters  []Parameter
	byName      map[string]int
	conditional bool
	order       []int                     // when conditional: each after the one that it depends on
	constraints []func(p Point) (ok bool) // what WithConstraints added
}

// Len is how many parameters there are.
func (s Space) Len() int { return len(s.parameters) }

// At is the i-th parameter.
func (s Space) At(i int) Parameter { return s.parameters[i] }

// Index finds a parameter's position by its name.
func (s Space) Index(name string) (i int, ok bool) {
	i, ok = s.byName[name]
	return i, ok
}

// Assignment is the value of one parameter in text.
type Assignment struct {
	Name, Value string
}

// Assignments writes a point of the space as text, in the order of the
// parameters. Parameters that were not set are left out.
func (s Space) Assignments(p Point) []Assignment {
	out := make([]Assignment, 0, len(s.parameters))
	for i, v := range p {
		if i < len(s.parameters) && v != (Value{}) {
			out = append(out, Assignment{Name: s.parameters[i].name, Value: v.text})
		}
	}
	return out
}

// Parse finds the point that the assignments stand for; what Assignments has
// written comes back identical. Values of parameters that are not active are
// ignored. ok is false when a name is unknown or occurs twice, an active
// parameter is not set, a value is not allowed or a constraint does not hold.
// The point then holds what could be understood, and algorithms may still learn
// from it.
func (s Space) Parse(assignments []Assignment) (p Point, ok bool) {
	p = make(Point, len(s.parameters))
	seen := make([]bool, len(s.parameters))
	ok = true
	for _, a := range assignments {
		i, known := s.byName[a.Name]
		if !known || seen[i] {
			ok = false
			continue
		}
		seen[i] = true
		p[i], _ = s.parameters[i].Parse(a.Value)
	}
	s.Settle(p)
	return p, ok && s.Contains(p)
}

// Contains says whether p has a value that is allowed for each active
// parameter, none for the others, and all constraints on parameters hold. p
// must come from this space.
func (s Space) Contains(p Point) bool {
	if len(p) != len(s.parameters) {
		return false
	}
	for i := range p {
		if s.conditional && !s.active(i, p) {
			if p[i].IsSet() {
				return false
			}
		} else if !p[i].in {
			return false
		}
	}
	for _, holds := range s.constraints {
		if !holds(p) {
			return false
		}
	}
	return true
}

// Constrained says whether there are constraints on the parameters.
func (s Space) Constrained() bool { return len(s.constraints) > 0 }

// Key is equal for equal points and different for different ones; ok is false
// when the space does not contain p. It serves as a map's key and nothing else.
func (s Space) Key(p Point) (key string, ok bool) {
	if !s.Contains(p) {
		return "", false
	}
	buf := make([]byte, 0, 4*len(p))
	for _, v := range p {
		switch {
		case !v.in:
			buf = append(buf, 0)
		case v.index >= 0:
			buf = binary.AppendUvarint(buf, uint64(v.index)+1)
		default:
			buf = binary.LittleEndian.AppendUint64(append(buf, 1), math.Float64bits(v.number))
		}
	}
	return string(buf), true
}

// Encode maps a point to the unit box, one coordinate for each parameter; see
// Parameter.Encode; 0.5 for one that is not active. ok is false when the space
// does not contain p.
func (s Space) Encode(p Point) (u []float64, ok bool) {
	if !s.Contains(p) {
		return nil, false
	}
	u = make([]float64, len(p))
	for i, v := range p {
		u[i] = 0.5
		if v.in {
			u[i] = s.parameters[i].Encode(v)
		}
	}
	return u, true
}

// Decode maps coordinates in the unit box, one for each parameter, to a point
// of the space, where constraints may not hold; see Parameter.Decode. The
// coordinates of parameters that are not active are ignored.
func (s Space) Decode(u []float64) Point {
	p := make(Point, len(s.parameters))
	for i := range s.parameters {
		p[i] = s.parameters[i].Decode(u[i])
	}
	s.Settle(p)
	return p
}
