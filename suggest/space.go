package suggest

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Space is what is searched: parameters in the user's order. It is valid by
// construction, never changes, and may be shared. The zero Space has no
// parameters.
type Space struct {
	parameters []Parameter
	byName     map[string]int
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

// Size is how many points there are; finite is false when a parameter is
// continuous. A size of math.MaxUint64 means that many or more.
func (s Space) Size() (n uint64, finite bool) {
	n = 1
	for i := range s.parameters {
		count := s.parameters[i].count
		if count == 0 {
			return 0, false
		}
		high, low := bits.Mul64(n, uint64(count))
		if high != 0 {
			low = math.MaxUint64
		}
		n = low
	}
	return n, true
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
// written comes back identical. ok is false when a name is unknown or occurs
// twice, a parameter is not set, or a value is not allowed. The point then
// holds what could be understood, and algorithms may still learn from it.
func (s Space) Parse(assignments []Assignment) (p Point, ok bool) {
	p = make(Point, len(s.parameters))
	seen := make([]bool, len(s.parameters))
	ok = len(assignments) == len(s.parameters)
	for _, a := range assignments {
		i, known := s.byName[a.Name]
		if !known || seen[i] {
			ok = false
			continue
		}
		seen[i] = true
		v, allowed := s.parameters[i].Parse(a.Value)
		p[i] = v
		ok = ok && allowed
	}
	return p, ok
}

// Contains says whether p has a value that is allowed for each parameter. p
// must come from this space.
func (s Space) Contains(p Point) bool {
	if len(p) != len(s.parameters) {
		return false
	}
	for i := range p {
		if !p[i].in {
			return false
		}
	}
	return true
}

// Key is equal for equal points and different for different ones; ok is false
// when the space does not contain p. It serves as a map's key and nothing else.
func (s Space) Key(p Point) (key string, ok bool) {
	if !s.Contains(p) {
		return "", false
	}
	buf := make([]byte, 0, 4*len(p))
	for _, v := range p {
		if v.index >= 0 {
			buf = binary.AppendUvarint(buf, uint64(v.index))
		} else {
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(v.number))
		}
	}
	return string(buf), true
}

// Encode maps a point to the unit box, one coordinate for each parameter; see
// Parameter.Encode. ok is false when the space does not contain p.
func (s Space) Encode(p Point) (u []float64, ok bool) {
	if !s.Contains(p) {
		return nil, false
	}
	u = make([]float64, len(p))
	for i, v := range p {
		u[i] = s.parameters[i].Encode(v)
	}
	return u, true
}

// Decode maps coordinates in the unit box, one for each parameter, to a point
// of the space; see Parameter.Decode.
func (s Space) Decode(u []float64) Point {
	p := make(Point, len(s.parameters))
	for i := range s.parameters {
		p[i] = s.parameters[i].Decode(u[i])
	}
	return p
}
