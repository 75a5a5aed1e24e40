package parse

import (
	"bytes"
	"iter"
)

// assigned finds what looks like a metric: a name, a sign ("=" or ":"), a number.
// Names and numbers may be quoted.
func assigned(line []byte) iter.Seq2[string, string] {
	return func(yield func(name, sign string) bool) {
		for at := range signs(line) {
			if !beginsNumber(line[at+1:]) {
				continue
			}
			if name := nameAt(line[:at]); name != nil && !yield(string(name), string(line[at:at+1])) {
				return
			}
		}
	}
}

// signs yields the places of what may stand between a name and its value.
func signs(line []byte) iter.Seq[int] {
	return func(yield func(at int) bool) {
		for at := 0; ; at++ {
			k := bytes.IndexAny(line[at:], "=:")
			if k < 0 {
				return
			}
			if at += k; !yield(at) {
				return
			}
		}
	}
}

// maxQuoted bounds what is quoted of a value that is not a number, in bytes.
const maxQuoted = 40

// wrapped finds names whose value is a number within brackets, as programs print
// what holds numbers: loss=tensor(0.5), loss: [0.5]. It yields each with what is
// written, from the name on.
func wrapped(line []byte) iter.Seq2[string, string] {
	return func(yield func(name, written string) bool) {
		for at := range signs(line) {
			value := bytes.TrimLeft(line[at+1:], " \t")
			if !beginsWrapped(value) {
				continue
			}
			name := nameAt(line[:at])
			if name == nil {
				continue
			}
			sign, more := "=", ""
			if line[at] == ':' {
				sign = ": "
			}
			if len(value) > maxQuoted {
				value, more = value[:maxQuoted], "..."
			}
			if end := bytes.IndexAny(value, ")]"); end >= 0 {
				value, more = value[:end+1], ""
			}
			if !yield(string(name), string(name)+sign+string(value)+more) {
				return
			}
		}
	}
}

// beginsWrapped reports whether b begins with a name or none, brackets, and a
// number.
func beginsWrapped(b []byte) bool {
	n := 0
	for n < min(len(b), maxQuoted) && (isWord(b[n]) || b[n] == '.') {
		n++
	}
	opened := bytes.TrimLeft(b[n:], "([")
	return len(opened) < len(b)-n && beginsNumber(opened)
}

// nameAt returns the name that b ends with, nil when there is none.
func nameAt(b []byte) []byte {
	b = bytes.TrimRight(b, " \t")
	b = bytes.TrimSuffix(b, []byte{'"'})
	start := len(b)
	for start > 0 && (isName(b[start-1]) || b[start-1] == '.' || b[start-1] == '@') {
		start--
	}
	for start < len(b) && b[start] != '_' && (b[start]|0x20 < 'a' || b[start]|0x20 > 'z') {
		start++
	}
	if start == len(b) {
		return nil
	}
	return b[start:]
}

// beginsNumber reports whether b begins with a number, perhaps after spaces and a
// quote.
func beginsNumber(b []byte) bool {
	b = bytes.TrimPrefix(bytes.TrimLeft(b, " \t"), []byte{'"'})
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		b = b[1:]
	}
	switch {
	case len(b) == 0:
		return false
	case b[0] == '.':
		return len(b) > 1 && b[1] >= '0' && b[1] <= '9'
	case b[0] >= '0' && b[0] <= '9':
		return true
	case len(b) < 3 || len(b) > 3 && isWord(b[3]):
		return false
	}
	return bytes.EqualFold(b[:3], []byte("nan")) || bytes.EqualFold(b[:3], []byte("inf"))
}
