package parse

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Label is a label of a sample in an exposition.
type Label struct{ Name, Value string }

// Exposition reads lines of the Prometheus text format (version 0.0.4, and the
// quoted names of 1.0.0) and of OpenMetrics 1.0, which expfmt does not read. Its
// fields hold the sample of the last line.
//
// Comments, HELP, TYPE and exemplars are passed over: a metric is found by the
// name that its line has, so a histogram is its _sum, _count and _bucket lines.
type Exposition struct {
	// OpenMetrics: timestamps are in seconds instead of milliseconds, and lines
	// may have exemplars.
	OpenMetrics bool

	Name   string
	Labels []Label
	Value  float64
	// Raw is the value as it was written.
	Raw string
	// Time is what the line states, or the zero time.
	Time time.Time
}

// maxLabels bounds the labels of one line.
const maxLabels = 128

var errNoSample = errors.New("the line is not of the Prometheus text format")

func noSample(why string) error { return fmt.Errorf("%w: %s", errNoSample, why) }

var (
	sampleName = regexp.MustCompile(`^[a-zA-Z_:][\w:]*`)
	// sampleLabel is a label of a sample, a name in quotes that stands among the
	// labels, or a matcher of a selector, with what follows it.
	sampleLabel = regexp.MustCompile(`^(?:([a-zA-Z_]\w*)|"((?:[^"\\]|\\[\\"n])*)")[ \t]*(?:(=~|!~|!=|=)[ \t]*"((?:[^"\\]|\\[\\"n])*)"[ \t]*)?([,}])`)
	unescaper   = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// Parse reads one line, without its end of line. ok is false when the line holds
// no sample, because it is empty or a comment.
func (e *Exposition) Parse(line []byte) (ok bool, err error) {
	e.Name, e.Labels, e.Time = "", nil, time.Time{}
	line = bytes.Trim(line, blanks)
	if len(line) == 0 || line[0] == '#' {
		return false, nil
	}
	if !utf8.Valid(line) {
		return false, noSample("it is not UTF-8")
	}
	rest := string(line)
	e.Name = sampleName.FindString(rest)
	rest = strings.TrimLeft(rest[len(e.Name):], blanks)
	if labels, braced := strings.CutPrefix(rest, "{"); braced {
		if rest, err = e.labels(labels); err != nil {
			return false, err
		}
	}
	if e.Name == "" {
		return false, noSample("it does not begin with a name")
	}
	return true, e.number(rest)
}

const blanks = " \t"

// labels reads what follows an opening brace and returns what follows the
// closing one.
func (e *Exposition) labels(text string) (rest string, err error) {
	matchers, rest, err := readMatchers(text)
	if err != nil {
		return "", noSample(err.Error())
	}
	seen := map[string]bool{}
	for _, m := range matchers {
		switch {
		case m.operator == "" && e.Name == "" && m.label != "":
			e.Name = m.label // {"a name with any characters", label="value"}
			continue
		case m.operator != "=":
			return "", noSample("a label has no value")
		case seen[m.label]:
			return "", noSample("a label stands there twice")
		case len(seen) == maxLabels:
			return "", noSample(fmt.Sprintf("it has more than %d labels", maxLabels))
		}
		seen[m.label] = true
		e.Labels = append(e.Labels, Label{m.label, m.value})
	}
	return rest, nil
}

// readMatchers reads what follows an opening brace and returns what follows the
// closing one.
func readMatchers(text string) (matchers []matcher, rest string, err error) {
	for more := true; more; {
		text = strings.TrimLeft(text, blanks)
		if after, closed := strings.CutPrefix(text, "}"); closed {
			return matchers, after, nil
		}
		m := sampleLabel.FindStringSubmatch(text)
		if m == nil {
			return nil, "", errors.New("a label cannot be read, or the labels do not end")
		}
		name := m[1]
		if name == "" {
			name = unescaper.Replace(m[2])
		}
		matchers = append(matchers, matcher{label: name, operator: m[3], value: unescaper.Replace(m[4])})
		text, more = text[len(m[0]):], m[5] == ","
	}
	return matchers, text, nil
}

// number reads value, timestamp and exemplar.
func (e *Exposition) number(text string) (err error) {
	if e.OpenMetrics {
		text, _, _ = strings.Cut(text, "#") // the exemplar
	}
	words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(blanks, c) })
	if len(words) == 0 || len(words) > 2 {
		return noSample("it has no value, or more after its timestamp")
	}
	e.Raw = words[0]
	if e.Value, err = expositionFloat(e.Raw); err != nil {
		return noSample("its value is not a number")
	}
	if len(words) > 1 {
		ok := false
		if e.Time, ok = e.timestamp(words[1]); !ok {
			return noSample("its timestamp is not a number")
		}
	}
	return nil
}

func (e *Exposition) timestamp(text string) (time.Time, bool) {
	if e.OpenMetrics {
		return since1970(text)
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms).UTC(), err == nil
}

// expositionFloat reads a number as Go does, without its hexadecimal and
// underscored forms.
func expositionFloat(text string) (float64, error) {
	if strings.ContainsAny(text, "pP_") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// Text returns what to keep of the value's text, as Sample.Text.
func (e *Exposition) Text() string { return textOf([]byte(e.Raw), e.Value) }

// AppendSeries appends the sample's name and labels, in their order, as the
// format writes them.
func (e *Exposition) AppendSeries(dst []byte) []byte {
	dst = append(dst, e.Name...)
	for i, l := range e.Labels {
		dst = append(dst, "{,"[min(i, 1)])
		dst = append(append(dst, l.Name...), '=')
		dst = strconv.AppendQuote(dst, l.Value)
	}
	if len(e.Labels) > 0 {
		dst = append(dst, '}')
	}
	return dst
}
