package parse

import (
	"bytes"
	"encoding/binary"
)

// stepNames are the names of a step, the best first.
var stepNames = [...]string{"global_step", "step", "iteration", "iter", "epoch"}

// The ranks of a step's names, the best first: where a line states several, the
// finest counts.
const (
	globalStepRank = iota
	stepRank
	iterationRank // iter and iteration
	epochRank
	// noRank is the rank of what is no step.
	noRank
	// maxStepGap bounds what may stand between a step's name and its number.
	maxStepGap = 8
)

// stepFinder keeps the best step seen in one line.
type stepFinder struct {
	step int64
	rank int
}

func newStepFinder() stepFinder { return stepFinder{step: NoStep, rank: noRank} }

// rankOf returns the rank of a step's name in any case, or noRank.
func rankOf(name []byte) int {
	if len(name) < 4 || len(name) > 11 {
		return noRank
	}
	if rank, n := rankAt(name); n == len(name) {
		return rank
	}
	return noRank
}

// word4 are four letters as one number, in any case when folded.
func word4(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

const (
	fold4 = 0x20202020
	step4 = 's' | 't'<<8 | 'e'<<16 | 'p'<<24
	epoc4 = 'e' | 'p'<<8 | 'o'<<16 | 'c'<<24
	iter4 = 'i' | 't'<<8 | 'e'<<16 | 'r'<<24
)

// rankAt returns the rank of the step's name that b ends with, and its length;
// 0 if there is none. It looks from the end, because that tells most words apart
// at once.
func rankAt(b []byte) (rank, n int) {
	if len(b) < 4 {
		return noRank, 0
	}
	switch last := word4(b[len(b)-4:]) | fold4; {
	case last == step4:
		if n := len("global_step"); len(b) >= n && foldEqual(b[len(b)-n:len(b)-4], "global_") {
			return globalStepRank, n
		}
		return stepRank, 4
	case last == iter4:
		return iterationRank, 4
	case last>>24 == 'h' && len(b) >= 5 && word4(b[len(b)-5:])|fold4 == epoc4:
		return epochRank, 5
	case last>>24 == 'n' && len(b) >= 9 && foldEqual(b[len(b)-9:], "iteration"):
		return iterationRank, 9
	}
	return noRank, 0
}

// offer takes a step if it is better than what there is. The first of equal
// names counts.
func (f *stepFinder) offer(rank int, step int64) {
	if rank < f.rank {
		f.step, f.rank = step, rank
	}
}

// set is offer where the last of equal names counts.
func (f *stepFinder) set(rank int, step int64) {
	if rank <= f.rank {
		f.step, f.rank = step, rank
	}
}

// inText looks for steps in a line: a name that is a word of its own, then at
// most a few spaces, quotes, brackets, or one of : = #, then a number. So
// `step=3`, `"step": 3`, `Epoch 3/10`, `Epoch: [3][100/5005]`, `iter #3`.
func (f *stepFinder) inText(line []byte) {
	// Four letters and at least one digit.
	for i := 3; i < len(line)-1; i++ {
		if endsStep[line[i]] && !wordByte[line[i+1]] {
			if f.at(line, i+1); f.rank == 0 {
				return
			}
		}
	}
}

// endsStep holds the last letters of the names of steps.
var endsStep = [256]bool{'p': true, 'h': true, 'n': true, 'r': true, 'P': true, 'H': true, 'N': true, 'R': true}

// at looks for a step whose name ends before line[end], where the word ends.
func (f *stepFinder) at(line []byte, end int) {
	rank, n := rankAt(line[:end])
	if rank >= f.rank || end > n && isWord(line[end-n-1]) {
		return
	}
	gap := line[end:min(len(line), end+maxStepGap+1)]
	for i, c := range gap {
		if isDigit(c) {
			if step, n := scanStep(line[end+i:]); n > 0 {
				f.offer(rank, step)
			}
			return
		}
		switch c {
		case ' ', '\t', '"', '\'', '=', ':', '#', '[', '(':
		default:
			return
		}
	}
}

// scanStep reads a step: a whole number from 0 to 2^53, also as "1,000",
// "2.0", "1e3", "12k", "1.5M". n is 0 if there is none; a number with a unit
// ("37ms", "50%") is none.
func scanStep(b []byte) (step int64, n int) {
	for n < len(b) && n < 16 && isDigit(b[n]) {
		step = step*10 + int64(b[n]-'0')
		n++
	}
	if n < 16 && (n == len(b) || b[n] == ' ' || b[n] == '/') { // what most lines have
		return step, n
	}
	value, n := scanNumber(b)
	if n < len(b) && b[n] == ',' && allDigits(b[:n]) {
		if end, groups, ok := scanGroups(b); ok && groups > 0 {
			v := withoutCommas(b[:end])
			value, n = v.value, v.n
		}
	}
	if n < len(b) && (b[n] == 'k' || b[n] == 'K' || b[n] == 'M') {
		scale := 1e3
		if b[n] == 'M' {
			scale = 1e6
		}
		value *= scale
		n++
	}
	if n < len(b) && (isWord(b[n]) || b[n] == '%') {
		return NoStep, 0
	}
	step, ok := integral(value)
	if !ok {
		return NoStep, 0
	}
	return step, n
}

// integral returns v as a step. Steps are whole numbers from 0 to 2^53.
func integral(v float64) (int64, bool) {
	if !(v >= 0 && v <= 1<<53) {
		return NoStep, false
	}
	step := int64(v)
	return step, float64(step) == v
}

// headingFrame is what may stand around an epoch in a heading.
const headingFrame = " \t=-*#_.:"

// heading returns the epoch that a line announces which says nothing else:
// `Epoch 3/10`, `epoch 3:`, `===== Epoch [3/10] =====`.
func heading(line []byte) (epoch int64, ok bool) {
	for len(line) > 0 && line[0]|0x20 != 'e' {
		if bytes.IndexByte([]byte(headingFrame), line[0]) < 0 {
			return NoStep, false
		}
		line = line[1:]
	}
	if len(line) < len("epoch") || line[1]|0x20 != 'p' || !foldEqual(line[:len("epoch")], "epoch") {
		return NoStep, false
	}
	steps := newStepFinder()
	steps.at(line, len("epoch"))
	for _, c := range line[len("epoch"):] {
		if !isDigit(c) && bytes.IndexByte([]byte(headingFrame+"[]()/,\""), c) < 0 {
			return NoStep, false
		}
	}
	return steps.step, steps.rank == epochRank
}
