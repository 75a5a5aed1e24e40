package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vernier-ml/vernier/collector"
)

// Logfmt reads lines of key=value pairs parted by spaces, such as
//
//	ts=2026-03-04T05:06:07Z level=info step=3 loss=0.25 msg="all is \"well\""
//
// A key is made of any characters but spaces, '=' and '"'; a value is all up to
// the next space, or quoted with the escapes of JSON. A metric is the value of
// the key that has exactly its name; where a line has it twice, the last
// counts. A value that is not a number is kept as text. Words without '=' and
// pairs whose value is empty, or says that there is none (see isAbsent), are passed
// over, so ordinary text between the pairs does no harm.
//
// Step and time are as for JSON: the keys global_step, step, iteration (or
// iter), epoch; timestamp, or else time or ts.
type Logfmt struct{ record }

var _ Line = (*Logfmt)(nil)

// NewLogfmt returns a parser of the named metrics. Its error names one that no
// line can hold.
func NewLogfmt(metrics []string) (*Logfmt, error) {
	r := newRecord(metrics)
	for name := range r.index {
		if strings.IndexFunc(name, func(c rune) bool { return endsKey(byte(min(c, 0x7f))) }) >= 0 {
			return nil, fmt.Errorf("the metric %q cannot be a key of logfmt: a key has no spaces, '=' or '\"'", name)
		}
	}
	return &Logfmt{r}, nil
}

// endsKey reports whether a key cannot have a byte; a value may have '=' and '"'.
func endsKey(c byte) bool { return c <= ' ' || c == '=' || c == '"' }

// Parse implements Line.
func (l *Logfmt) Parse(dst []collector.Point, line []byte) ([]collector.Point, error) {
	l.record.begin()
	line = bytes.TrimPrefix(line, byteOrderMark)
	var err error
	for len(line) > 0 {
		n := 0
		for n < len(line) && !endsKey(line[n]) {
			n++
		}
		key := line[:n]
		switch line = line[n:]; {
		case len(line) == 0:
		case line[0] == '"': // quoted text without a key
			n, _ := quoted(line)
			line = line[n:]
		case line[0] != '=':
			line = line[1:]
		default:
			value, n, whole := scanValue(line[1:])
			if line = line[1+n:]; len(key) == 0 || isAbsent(value) {
				continue
			}
			if _, wanted := l.record.index[string(key)]; wanted && !whole && err == nil {
				err = fmt.Errorf("the value of %s has no closing quote", key)
			}
			if whole {
				l.pair(key, value)
			}
		}
	}
	return l.record.end(dst), err
}

func (l *Logfmt) pair(key, value []byte) {
	if i, ok := l.record.index[string(key)]; ok {
		l.record.found[i] = wholeSample(string(key), value)
	}
	l.record.key(string(key), string(value))
}

// scanValue reads the value that b begins with and returns its length with its
// quotes. whole is false when the closing quote is missing.
func scanValue(b []byte) (value []byte, n int, whole bool) {
	if len(b) == 0 || b[0] != '"' {
		for n < len(b) && b[n] > ' ' {
			n++
		}
		return b[:n], n, true
	}
	if n, whole = quoted(b); !whole {
		return b[1:], n, false
	}
	var text string
	if bytes.IndexByte(b[:n], '\\') < 0 || json.Unmarshal(b[:n], &text) != nil {
		return b[1 : n-1], n, true // without escapes, or with some that JSON does not have
	}
	return []byte(text), n, true
}

// quoted returns the length of the quoted text that b begins with, which is all
// of b where it is not closed.
func quoted(b []byte) (n int, closed bool) {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return len(b), false
}
