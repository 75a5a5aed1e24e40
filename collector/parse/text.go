package parse

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Text reads lines such as `epoch=3 loss=0.25 accuracy = 9.1e-1`.
//
// Without filters the grammar is Katib's default filter,
//
//	([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)
//
// with these differences, all deliberate: nan, inf and infinity are values; a
// slash belongs to a name, so that `val/loss=0.3` is a value of the metric
// val/loss and none of loss; any metric name is found, also one with characters
// that the grammar does not have; `1,234.5` and `1,234,567` are numbers;
// `loss=0,31` and `loss=1,234`, whose comma may be a decimal one, are errors
// instead of 0 and 1; a name without a number after it is passed over.
//
// With filters, each is a Go regular expression whose first group is the name
// and whose second is the value, as in Katib. What the second captured is the
// value as a whole: `1,234` is 1234 and `97.5%` is 97.5. A value that is not a
// number is kept as text.
//
// The step of a line is what it states as global_step, step, iteration (or
// iter) or epoch, the first of these that it has, in any case of letters, as a
// word before the number: `step=3`, `"step": 3`, `Epoch 3/10`, `step 1,000`. Of
// two of one name, that before a '=' counts, else the first.
// A line that says nothing but an epoch, as Keras prints above its progress
// bars, is the step of the lines after it that state none, until a line with a
// metric states a finer step than an epoch.
//
// The time is the first word, if that is an RFC 3339 time, or a number of
// seconds, milliseconds, microseconds or nanoseconds since 1970 with the 10, 13,
// 16 or 19 digits that such a number has at present.
//
// Escape sequences of terminals, such as colours, are passed over.
type Text struct {
	names   []string      // longest first
	byLast  [256][]string // the names that end with a byte, longest first
	filters []filter
	texts   texts
	escapes escapes

	epoch int64 // what the last heading said, or NoStep
	finer bool  // steps have been finer than epochs
}

var (
	_ Line     = (*Text)(nil)
	_ Resetter = (*Text)(nil)
	_ Peeker   = (*Text)(nil)
)

// NewText returns a parser of the named metrics. Its error says which filter
// cannot be used and why.
func NewText(metrics, filters []string) (*Text, error) {
	names, err := wanted(metrics)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	t := &Text{names: names, epoch: NoStep}
	for _, n := range names {
		last := n[len(n)-1]
		t.byLast[last] = append(t.byLast[last], n)
	}
	for _, f := range filters {
		compiled, err := newFilter(f)
		if err != nil {
			return nil, err
		}
		t.filters = append(t.filters, compiled)
	}
	return t, nil
}

// Reset implements Resetter.
func (t *Text) Reset() { t.epoch, t.finer = NoStep, false }

// Peek implements Peeker.
func (t *Text) Peek(dst []Sample, line []byte) ([]Sample, error) {
	epoch, finer := t.epoch, t.finer
	defer func() { t.epoch, t.finer = epoch, finer }()
	return t.Parse(dst, line)
}

// Parse implements Line.
func (t *Text) Parse(dst []Sample, line []byte) ([]Sample, error) {
	start := len(dst)
	steps := newStepFinder()
	var err error
	coloured := false
	if t.filters == nil {
		if dst, coloured, err = t.assignments(dst, line, &steps); coloured {
			line = t.escapes.strip(line)
			steps = newStepFinder()
			dst, _, err = t.assignments(dst, line, &steps)
		}
	} else {
		if coloured = bytes.IndexByte(line, escape) >= 0; coloured {
			line = t.escapes.strip(line)
		}
		dst = t.filtered(dst, line)
	}
	if len(dst) == start {
		t.passed(line)
		t.escapes.release()
		return dst, err
	}
	// A step before a '=' is known. Only a global step is finer.
	if steps.rank > stepRank || steps.rank == stepRank && bytes.IndexByte(line, '_') >= 0 {
		steps.inText(line)
	}
	t.finer = t.finer || steps.rank < epochRank
	if steps.rank == noRank && !t.finer {
		steps.step = t.epoch
	}
	at := leadingTime(line)
	for i := start; i < len(dst); i++ {
		s := &dst[i]
		s.Step, s.Time = steps.step, at
		if coloured {
			s.Offset = t.escapes.original(s.Offset)
		}
	}
	t.escapes.release()
	return dst, err
}

// passed takes note of a line without samples.
func (t *Text) passed(line []byte) {
	if len(line) > maxHeading {
		return
	}
	if bytes.IndexByte(line, escape) >= 0 {
		line = t.escapes.strip(line)
	}
	if epoch, ok := heading(line); ok {
		t.epoch = epoch
	}
}

// maxHeading bounds a line that announces an epoch, in bytes.
const maxHeading = 128

// assignments finds name=value, and steps before a '='. Where coloured is true,
// it found nothing because the line has escape sequences.
func (t *Text) assignments(dst []Sample, line []byte, steps *stepFinder) (_ []Sample, coloured bool, err error) {
	looked := false // for escape sequences
	for next := 0; ; {
		k := bytes.IndexByte(line[next:], '=')
		if k < 0 {
			return dst, false, err
		}
		end := next + k
		next = end + 1
		for end > 0 && isSpace(line[end-1]) {
			end--
		}
		if end == 0 {
			continue
		}
		last := line[end-1]
		if endsStep[last] {
			steps.at(line, end)
		}
		// Most names in most lines are not wanted and need no closer look.
		if t.byLast[last] == nil && !endsSequence(line[:end]) {
			continue
		}
		if !looked {
			if looked = true; bytes.IndexByte(line, escape) >= 0 {
				return dst, true, nil
			}
		}
		name := t.nameBefore(line[:end])
		if name == "" {
			continue
		}
		rest := trimLeft(line[next:])
		v, ok := scanGrouped(rest)
		switch {
		case !ok && err == nil:
			err = fmt.Errorf("the value %q of %s is ambiguous: write it with a decimal point and without commas, or capture it with a filter", rest[:min(v.n, 40)], name)
		case ok && v.n > 0:
			dst = append(dst, Sample{})
			s := &dst[len(dst)-1]
			s.Metric, s.Value, s.Offset = name, v.value, end-len(name)
			if !v.short {
				s.Text = t.texts.of(rest[:v.n], v)
			}
			next = len(line) - len(rest) + v.n
		}
	}
}

// maxSequence bounds an escape sequence between a name and its sign, in bytes.
const maxSequence = 32

// endsSequence reports whether b may end with an escape sequence that sets a
// colour or clears a part of the line.
func endsSequence(b []byte) bool {
	switch b[len(b)-1] {
	case 'm', 'K', 'J', 'G', 'H':
		return bytes.IndexByte(b[max(0, len(b)-maxSequence):], escape) >= 0
	}
	return false
}

// nameBefore returns the longest wanted name that b ends with and that is not
// the end of a longer name, or "".
func (t *Text) nameBefore(b []byte) string {
	for _, n := range t.byLast[b[len(b)-1]] {
		at := len(b) - len(n)
		if at >= 0 && string(b[at:]) == n && (at == 0 || !isName(b[at-1])) {
			return n
		}
	}
	return ""
}

func isName(c byte) bool { return isWord(c) || c == '|' || c == '-' || c == '/' }

// wholeSample reads a whole text as a value.
func wholeSample(t *texts, text []byte) Sample {
	if v, ok := wholeNumber(text); ok {
		return Sample{Value: v.value, Text: t.of(text, v), Step: NoStep}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		v = math.NaN()
	}
	return Sample{Value: v, Text: t.keep(text), Step: NoStep}
}

// escape begins a sequence that a terminal obeys.
const escape = 0x1b

// escapes removes the sequences that terminals obey from a line, and knows
// where what is left was.
type escapes struct {
	line []byte
	cuts []cut
}

// cut says that what is at and after a place of the stripped line was n bytes
// further on.
type cut struct{ at, n int }

// strip returns line without escape sequences. The result is valid until the
// next call. A sequence is ESC, one byte from @ to _, and after ESC [ all up to
// a byte from @ to ~; after ESC ] all up to BEL or ESC \ (ECMA-48).
func (e *escapes) strip(line []byte) []byte {
	e.line, e.cuts = e.line[:0], e.cuts[:0]
	removed := 0
	endless := false // a text has no end, so that none after it has
	for {
		k := bytes.IndexByte(line, escape)
		if k < 0 {
			e.line = append(e.line, line...)
			return e.line
		}
		e.line = append(e.line, line[:k]...)
		n := 2
		if !endless || k+1 == len(line) || line[k+1] != ']' {
			var open bool
			n, open = escapeLength(line[k:])
			endless = endless || open
		}
		removed += n
		if k := len(e.cuts); k > 0 && e.cuts[k-1].at == len(e.line) {
			e.cuts[k-1].n = removed
		} else {
			e.cuts = append(e.cuts, cut{len(e.line), removed})
		}
		line = line[k+n:]
	}
}

// release lets go of what a very long line needed.
func (e *escapes) release() {
	if cap(e.line) > keptBytes {
		e.line = nil
	}
	if cap(e.cuts) > keptItems {
		e.cuts = nil
	}
}

// original returns the place in the line of a place in the stripped line.
func (e *escapes) original(at int) int {
	k, found := slices.BinarySearchFunc(e.cuts, at, func(c cut, at int) int { return cmp.Compare(c.at, at) })
	if !found {
		k--
	}
	if k < 0 {
		return at
	}
	return at + e.cuts[k].n
}

// escapeLength returns the length of the sequence that b begins with. endless says
// that it is a text whose end is not in b; what follows it is then text.
func escapeLength(b []byte) (n int, endless bool) {
	if len(b) < 2 || b[1] < '@' || b[1] > '_' {
		return 1, false
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= '@' && b[i] <= '~' {
				return i + 1, false
			}
			if b[i] < ' ' {
				return i, false
			}
		}
	case ']':
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] == '\a':
				return i + 1, false
			case b[i] == escape && i+1 < len(b) && b[i+1] == '\\':
				return i + 2, false
			}
		}
		return 2, true
	}
	return 2, false // unfinished, or a sequence of two bytes
}
