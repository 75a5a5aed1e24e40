package algorithm

import (
	"math"
	"unsafe"

	"github.com/vernier-ml/vernier/suggest"
)

// marks tell whether trials are those that were read before. Each question
// looks at all trials of its study, of which there may be many thousands and
// nearly all known: what is kept for each is little and lies close together, and
// is compared without a call. Only settled ones need no look.
//
// A mark stands for all of a trial that counts: the memory of its point and its
// Meta, which are never modified in place, so that the same memory has the same
// content, and the bits of its numbers. A trial with more than a mark holds has
// none and is always compared in full.
type marks struct {
	dims        int // of points
	objectives  int // values at most
	constraints int // that the study has; without any, what trials say of them does not count
	whole       bool
	all         []mark
	numbers     []uint64 // bits of values, then of constraints: stride for each mark
}

type mark struct {
	point               *suggest.Value // where the point lies in memory; nil: no mark
	meta                unsafe.Pointer // the same
	number              int32
	state               int16
	values, constraints int8 // how many
}

// newMarks are for trials of a study. whole says that curves and resources count
// too.
func newMarks(dims int, s suggest.Study, whole bool) marks {
	return marks{dims: dims, objectives: len(s.Objectives), constraints: len(s.Constraints), whole: whole}
}

func (m *marks) stride() int { return m.objectives + m.constraints }

// together is how many trials are compared at once.
const together = 64

// agree is how many of the first trials are, in this order, those with marks, of
// which so many are known to be. same compares in full, where a mark does not
// say so.
func (m *marks) agree(known int, trials []suggest.Trial, same func(i int) bool) int {
	n := min(len(trials), len(m.all))
	for first := known; first < n; first += together {
		end := min(n, first+together)
		if m.dims > 0 && m.showAll(first, trials[first:end]) {
			continue
		}
		for i := first; i < end; i++ {
			if t := &trials[i]; !m.shows(i, t) {
				if !same(i) {
					return i
				}
				m.set(i, t)
			}
		}
	}
	return n
}

// showAll says whether the marks from first on are those of the trials, in a
// space with dimensions. It does not look where they differ: most of the time
// goes into bringing trials from memory, and without decisions in between, many
// come at once.
func (m *marks) showAll(first int, trials []suggest.Trial) bool {
	all, dims, differ := m.all[first:first+len(trials)], m.dims, 0
	for i := range trials {
		t, k := &trials[i], &all[i]
		point, meta := uintptr(unsafe.Pointer(unsafe.SliceData(t.Point))), uintptr(address(t.Meta))
		differ |= (t.Number ^ int(k.number)) | (int(t.State) ^ int(k.state)) | (len(t.Values) ^ int(k.values)) | (len(t.Point) ^ dims)
		differ |= int(point^uintptr(unsafe.Pointer(k.point))) | int(meta^uintptr(k.meta))
	}
	if differ != 0 {
		return false
	}
	if m.whole || m.constraints > 0 {
		for i := range trials {
			if !m.shows(first+i, &trials[i]) {
				return false
			}
		}
		return true
	}
	numbers, different := m.numbers[first*m.objectives:], uint64(0)
	for i := range trials {
		for j, v := range trials[i].Values {
			different |= math.Float64bits(v) ^ numbers[j]
		}
		numbers = numbers[m.objectives:]
	}
	return different == 0
}

// shows says whether mark i is that of the trial.
func (m *marks) shows(i int, t *suggest.Trial) bool {
	k := &m.all[i]
	if k.point == nil || k.point != unsafe.SliceData(t.Point) || int(k.number) != t.Number || suggest.State(k.state) != t.State ||
		k.meta != address(t.Meta) || len(t.Point) != m.dims || len(t.Values) != int(k.values) {
		return false
	}
	numbers := m.numbers[i*m.stride():]
	for j, v := range t.Values {
		if math.Float64bits(v) != numbers[j] {
			return false
		}
	}
	return (!m.whole || len(t.Curve) == 0 && t.Resource == 0) && (m.constraints == 0 || m.showsConstraints(i, t))
}

func (m *marks) showsConstraints(i int, t *suggest.Trial) bool {
	if len(t.Constraints) != int(m.all[i].constraints) {
		return false
	}
	numbers := m.numbers[i*m.stride()+m.objectives:]
	for j, v := range t.Constraints {
		if math.Float64bits(v) != numbers[j] {
			return false
		}
	}
	return true
}

// add makes a mark behind the others.
func (m *marks) add(t *suggest.Trial) {
	m.all = append(m.all, mark{})
	for range m.stride() {
		m.numbers = append(m.numbers, 0)
	}
	m.set(len(m.all)-1, t)
}

// cut takes marks away until n are left.
func (m *marks) cut(n int) { m.all, m.numbers = m.all[:n], m.numbers[:n*m.stride()] }

// set makes mark i that of the trial.
func (m *marks) set(i int, t *suggest.Trial) {
	m.all[i] = mark{}
	constraints := t.Constraints
	if m.constraints == 0 {
		constraints = nil
	}
	const most = math.MaxInt8
	switch {
	case len(t.Point) != m.dims || m.dims == 0 || t.Number != int(int32(t.Number)) || t.State != suggest.State(int16(t.State)):
		return
	case len(t.Values) > min(m.objectives, most) || len(constraints) > min(m.constraints, most):
		return
	case m.whole && (len(t.Curve) != 0 || t.Resource != 0):
		return
	}
	m.all[i] = mark{
		point: &t.Point[0], meta: address(t.Meta), number: int32(t.Number), state: int16(t.State),
		values: int8(len(t.Values)), constraints: int8(len(constraints)),
	}
	numbers := m.numbers[i*m.stride():]
	for j, v := range t.Values {
		numbers[j] = math.Float64bits(v)
	}
	for j, v := range constraints {
		numbers[m.objectives+j] = math.Float64bits(v)
	}
}

// address is where a map lies in memory: what reflect.Value.UnsafePointer gives,
// at a tenth of its cost.
func address(m suggest.Meta) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&m)) }
