package parse

import (
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
	label    string
	operator string
	value    string
	pattern  *regexp.Regexp // nil: value is compared
}

// NewSelector reads a metric's name as a selector.
func NewSelector(metric string) (Selector, error) {
	name, labels, braced := strings.Cut(metric, "{")
	s := Selector{Metric: metric, name: strings.TrimSpace(name)}
	if s.name == "" {
		return s, fmt.Errorf("the metric %q has no name", metric)
	}
	if !braced {
		return s, nil
	}
	matchers, rest, err := readMatchers(labels)
	if err == nil && strings.Trim(rest, blanks) != "" {
		err = fmt.Errorf("there is %q after the closing brace", rest)
	}
	for i := range matchers {
		m := &matchers[i]
		switch {
		case err != nil:
		case m.operator == "":
			err = fmt.Errorf("the label %s has no value", m.label)
		case strings.HasSuffix(m.operator, "~"):
			m.pattern, err = regexp.Compile("^(?s:" + m.value + ")$")
		}
	}
	if err != nil {
		return s, fmt.Errorf(`the metric %q cannot be read: %w; write it as name{label="value"}`, metric, err)
	}
	s.matchers = matchers
	return s, nil
}

// Name is the name that a sample must have.
func (s Selector) Name() string { return s.name }

// Matches says whether the sample that e holds is meant.
func (s Selector) Matches(e *Exposition) bool {
	if e.Name != s.name {
		return false
	}
	for _, m := range s.matchers {
		if m.matches(e.Labels) == strings.HasPrefix(m.operator, "!") {
			return false
		}
	}
	return true
}

func (m matcher) matches(labels []Label) bool {
	value := ""
	for _, l := range labels {
		if l.Name == m.label {
			value = l.Value
		}
	}
	if m.pattern != nil {
		return m.pattern.MatchString(value)
	}
	return value == m.value
}
