package parse

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Selector picks samples of an exposition by name and labels, written as in
// PromQL: `val_loss`, `loss{split="test"}`, `loss{split!="train", rank=~"0|1"}`.
// A label that is not there counts as empty. Regular expressions match whole
// values.
type Selector struct {
	// Metric is the selector as it was written.
	Metric   string
	name     string
	matchers []matcher
}

// matcher is a condition on one label.
type matcher struct {
	label   []byte
	value   []byte
	pattern *regexp.Regexp // nil: value is compared
	negated bool
}

// NewSelector reads a metric's name as a selector.
func NewSelector(metric string) (Selector, error) {
	s := Selector{Metric: metric}
	name, labels, braced := strings.Cut(metric, "{")
	s.name = strings.TrimSpace(name)
	if s.name == "" {
		return s, fmt.Errorf("the metric %q has no name", metric)
	}
	if !braced {
		return s, nil
	}
	rest := []byte(labels)
	for {
		rest = trimBlank(rest)
		if len(rest) > 0 && rest[0] == '}' && len(trimBlank(rest[1:])) == 0 {
			return s, nil
		}
		m, after, err := readMatcher(rest)
		if err != nil {
			return s, fmt.Errorf(`the metric %q cannot be read: %w; write it as name{label="value"}`, metric, err)
		}
		s.matchers = append(s.matchers, m)
		rest = trimBlank(after)
		if len(rest) > 0 && rest[0] == ',' {
			rest = rest[1:]
		} else if len(rest) == 0 || rest[0] != '}' {
			return s, fmt.Errorf(`the metric %q has no closing brace; write it as name{label="value"}`, metric)
		}
	}
}

func readMatcher(b []byte) (m matcher, rest []byte, err error) {
	n := nameLength(b, false)
	if n == 0 {
		return m, nil, errors.New("a label has no name")
	}
	m.label, b = b[:n], trimBlank(b[n:])
	pattern := false
	switch {
	case bytes.HasPrefix(b, []byte("!=")):
		m.negated, b = true, b[2:]
	case bytes.HasPrefix(b, []byte("!~")):
		m.negated, pattern, b = true, true, b[2:]
	case bytes.HasPrefix(b, []byte("=~")):
		pattern, b = true, b[2:]
	case bytes.HasPrefix(b, []byte("=")):
		b = b[1:]
	default:
		return m, nil, fmt.Errorf("the label %s has no value", m.label)
	}
	var e Exposition
	if m.value, rest, err = e.quoted(trimBlank(b)); err != nil {
		return m, nil, fmt.Errorf("the value of the label %s is not in quotes", m.label)
	}
	if pattern {
		if m.pattern, err = regexp.Compile("^(?s:" + string(m.value) + ")$"); err != nil {
			return m, nil, err
		}
	}
	return m, rest, nil
}

// Name is the name that a sample must have.
func (s Selector) Name() string { return s.name }

// Matches says whether the sample that e holds is meant.
func (s Selector) Matches(e *Exposition) bool {
	if string(e.Name) != s.name {
		return false
	}
	for _, m := range s.matchers {
		if m.matches(e.Labels) == m.negated {
			return false
		}
	}
	return true
}

func (m matcher) matches(labels []Label) bool {
	var value []byte
	for _, l := range labels {
		if bytes.Equal(l.Name, m.label) {
			value = l.Value
		}
	}
	if m.pattern != nil {
		return m.pattern.Match(value)
	}
	return bytes.Equal(value, m.value)
}
