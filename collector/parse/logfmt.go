package parse

import (
	"encoding/json"
	"fmt"
)

// Logfmt reads lines of key=value pairs parted by spaces, such as
//
//	ts=2026-03-04T05:06:07Z level=info step=3 loss=0.25 msg="all is \"well\""
//
// A key is made of any characters but spaces, '=' and '"'; a value is all up to
// the next space, or quoted with the escapes of JSON. A metric is the value of
// the key that has exactly its name; where a line has it twice, the last
// counts. A value that is not a number is kept as text. Words without '=' and
// pairs whose value is empty are passed over, so ordinary text between the
// pairs does no harm.
//
// Step and time are as for JSON: the keys global_step, step, iteration (or
// iter), epoch; timestamp, or else time or ts.
type Logfmt struct {
	names []*metricName
	picks picks
}

var _ Line = (*Logfmt)(nil)

// NewLogfmt returns a parser of the named metrics. Its error names one that no
// line can hold.
func NewLogfmt(metrics []string) (*Logfmt, error) {
	names, err := wantedNames(metrics)
	if err != nil {
		return nil, err
	}
	for _, m := range names {
		for i := range len(m.name) {
			if endsKey[m.name[i]] {
				return nil, fmt.Errorf("the metric %q cannot be a key of logfmt: a key has no spaces, '=' or '\"'", m.name)
			}
		}
	}
	return &Logfmt{names: names}, nil
}

// endsKey holds what a key cannot have; of it, a value may have '=' and '"'.
var endsKey = func() (table [256]bool) {
	for c := range byte(' ' + 1) {
		table[c] = true
	}
	table['='], table['"'] = true, true
	return table
}()

// Parse implements Line.
func (l *Logfmt) Parse(dst []Sample, line []byte) ([]Sample, error) {
	l.picks.begin(dst)
	steps, at := newStepFinder(), stamp{}
	var err error
	for i := 0; i < len(line); {
		if line[i] == '"' { // quoted text without a key
			n, _ := quoted(line[i:])
			i += n
			continue
		}
		begin := i
		for i < len(line) && !endsKey[line[i]] {
			i++
		}
		key := line[begin:i]
		if i == len(line) || line[i] != '=' {
			if i == begin {
				i++
			}
			continue
		}
		i++
		value, n, whole := scanValue(line[i:])
		if len(key) > 0 && len(value) > 0 {
			m := l.metric(key)
			if m != nil && whole {
				l.picks.text(m, value, i)
			} else if m != nil && err == nil {
				err = fmt.Errorf("the value of %s has no closing quote", m.name)
			}
			at.offer(key, value)
			if rank := rankOf(key); rank != noRank {
				if step, n := scanStep(value); n > 0 && n == len(value) {
					steps.set(rank, step)
				}
			}
		}
		i += n
	}
	return l.picks.end(steps.step, at.at), err
}

func (l *Logfmt) metric(key []byte) *metricName {
	for _, m := range l.names {
		if m.name == string(key) {
			return m
		}
	}
	return nil
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
	n, escaped := quoted(b)
	if n < 2 || b[n-1] != '"' || escaped < 0 {
		return b[1:n], n, false
	}
	if escaped == 0 {
		return b[1 : n-1], n, true
	}
	var text string
	if json.Unmarshal(b[:n], &text) != nil {
		return b[1 : n-1], n, true // escapes that JSON does not have
	}
	return []byte(text), n, true
}

// quoted returns the length of the quoted text that b begins with, and how many
// escapes it has: -1 when it has no end.
func quoted(b []byte) (n, escapes int) {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			escapes++
			i++
		case '"':
			return i + 1, escapes
		}
	}
	return len(b), -1
}
