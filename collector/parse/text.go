package parse

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vernier-ml/vernier/collector"
)

// Text reads lines such as `epoch=3 loss=0.25 accuracy = 9.1e-1`.
//
// Without filters the grammar is Katib's default filter,
//
//	([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)
//
// with these differences, all deliberate: nan, inf and infinity are values; a
// slash belongs to a name, and so does a letter of any script and one of . : @ #
// after a word, so that `val/loss=0.3` and `val.loss=0.3` are no values of loss;
// any metric name is found, also one with characters that the grammar does not
// have; `1,234.5`, `1,234,567`, `1_000` and `1.e-3` are numbers; `loss=0,31`,
// `loss=1,234` and `loss=1.234,56`, whose comma may be a decimal one, and
// `loss=0x10` are errors instead of 0 and 1; a name without a number after it is
// passed over.
//
// With filters, each is a Go regular expression whose first group is the name
// and whose second is the value, as in Katib. What the second captured is the
// value as a whole: `1,234` is 1234 and `97.5%` is 97.5. A value that is not a
// number is kept as text. A capture that an exponent follows (`8.7` of `8.7e-04`)
// is an error.
//
// The step of a line is what it states as global_step, step, iteration (or
// iter) or epoch, the first of these that it has, in any case of letters, as a
// word before the number: `step=3`, `"step": 3`, `Epoch 3/10`, `step 1,000`. Of
// two of one name, that before a '=' counts, else the first.
// A line that says nothing but an epoch, as Keras prints above its progress
// bars, is the step of the lines after it that state none, until a line with a
// metric states a finer step than an epoch. Steps that begin anew in each epoch are
// counted on; see withinEpochs.
//
// The time is the first word, if that is an RFC 3339 time, or a number of
// seconds, milliseconds, microseconds or nanoseconds since 1970 with the 10, 13,
// 16 or 19 digits that such a number has at present.
//
// Escape sequences of terminals, such as colours, are passed over.
type Text struct {
	byLast  [256][]string // the names that end with a byte, longest first
	names   []string
	filters []*regexp.Regexp
	items   bool // see NewTextItems

	epochs epochs
}

var _ Line = (*Text)(nil)

// NewText returns a parser of the named metrics. Its error says which filter
// cannot be used and why.
func NewText(metrics, filters []string) (*Text, error) {
	names := wanted(metrics)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	t := &Text{names: names, epochs: newEpochs()}
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

// Reset implements Line.
func (t *Text) Reset() { t.epochs = newEpochs() }

// Parse implements Line.
func (t *Text) Parse(dst []collector.Point, line []byte) ([]collector.Point, error) {
	if bytes.IndexByte(line, escape) >= 0 {
		line = escapes.ReplaceAll(line, nil)
	}
	start := len(dst)
	var err error
	switch {
	case t.items:
		dst = t.allItems(dst, line)
	case t.filters == nil:
		dst, err = t.assignments(dst, line)
	default:
		dst, err = t.filtered(dst, line)
	}
	if len(dst) == start {
		if epoch, ok := heading(line); ok {
			t.epochs.heading = epoch
		}
		return dst, err
	}
	f := newStepFinder()
	f.inText(line)
	step, at := t.epochs.step(&f), leadingTime(line)
	for i := start; i < len(dst); i++ {
		dst[i].Step, dst[i].Time = step, at
	}
	return dst, err
}

// assignments finds name=value.
func (t *Text) assignments(dst []collector.Point, line []byte) (_ []collector.Point, err error) {
	for next := 0; ; {
		k := bytes.IndexByte(line[next:], '=')
		if k < 0 {
			return dst, err
		}
		name, at := t.nameBefore(line[:next+k])
		next += k + 1
		if name == "" {
			continue
		}
		rest := trimLeft(line[next:])
		v, n, ok := scanGrouped(rest)
		switch {
		case !ok && err == nil:
			err = fmt.Errorf("the value %q of %s is ambiguous: write it with a decimal point and without commas, or capture it with a filter", rest[:min(n, 40)], name)
		case ok && n > 0:
			dst = append(dst, collector.Point{Metric: name, Value: v, Text: textOf(rest[:n], v), Seq: int64(at)})
			next = len(line) - len(rest) + n
		}
	}
}

// nameBefore returns the longest wanted name that b ends with, apart from blanks,
// and that is not the end of a longer name, and its place; "" if there is none.
func (t *Text) nameBefore(b []byte) (name string, at int) {
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return "", 0
	}
	for _, n := range t.byLast[b[len(b)-1]] {
		at := len(b) - len(n)
		if at >= 0 && string(b[at:]) == n && !endsInName(b[:at]) {
			return n, at
		}
	}
	return "", 0
}

func isName(c byte) bool { return isWord(c) || c == '|' || c == '-' || c == '/' }

// logPrefix is what Python's logging puts before a message.
var logPrefix = regexp.MustCompile(`^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):(?:[\w.]+:)?`)

// maxLogPrefix bounds it, in bytes.
const maxLogPrefix = 200

// endsInName reports whether b ends with a part of a name, so that what follows is
// not a name of its own: a letter of any script, a digit, one of _ | - /, or one
// of . : @ # after a word, as in val.loss.
func endsInName(b []byte) bool {
	last, size := utf8.DecodeLastRune(b)
	switch {
	case size == 0:
		return false
	case last >= utf8.RuneSelf:
		return unicode.In(last, unicode.Letter, unicode.Digit, unicode.Mark)
	case isName(byte(last)):
		return true
	case !strings.ContainsRune(".:@#", last):
		return false
	}
	word := bytes.TrimRightFunc(b[:len(b)-1], func(r rune) bool { return r < utf8.RuneSelf && isWord(byte(r)) || unicode.IsLetter(r) })
	first, _ := utf8.DecodeRune(b[len(word):])
	return (first == '_' || unicode.IsLetter(first)) && (len(b) > maxLogPrefix || len(logPrefix.Find(b)) < len(b))
}

// escape begins a sequence that a terminal obeys.
const escape = 0x1b

// escapes are these sequences (ECMA-48): ESC [ and all up to a byte from @ to ~,
// ESC ] and all up to BEL or ESC \, or ESC and a byte from @ to _. An ESC that
// begins none of them is passed over alone.
var escapes = regexp.MustCompile(`(?s)\x1b(\[[ -?]*[@-~]|\][^\a\x1b]*(\a|\x1b\\)|[@-_])?`)
