package parse

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// Label is a label of a sample in an exposition.
type Label struct{ Name, Value []byte }

// Exposition reads lines of the Prometheus text format (version 0.0.4, and the
// quoted names of 1.0.0) and of OpenMetrics 1.0. Its fields hold the sample of
// the last line; they are valid until the next call. It reads any number of
// lines without allocating.
//
// Comments, HELP, TYPE and exemplars are passed over: a metric is found by the
// name that its line has, so a histogram is its _sum, _count and _bucket lines.
type Exposition struct {
	// OpenMetrics: timestamps are in seconds instead of milliseconds, and lines
	// may have exemplars.
	OpenMetrics bool

	Name   []byte
	Labels []Label
	Value  float64
	// Raw is the value as it was written.
	Raw []byte
	// Time is what the line states, or the zero time.
	Time time.Time

	unescaped []byte
}

// Limits of one line of an exposition. Nobody's metric has as many labels.
const maxLabels = 128

var errNoSample = errors.New("the line is not of the Prometheus text format")

func noSample(why string) error { return fmt.Errorf("%w: %s", errNoSample, why) }

// Parse reads one line, without its end of line. ok is false when the line holds
// no sample, because it is empty or a comment.
func (e *Exposition) Parse(line []byte) (ok bool, err error) {
	e.Name, e.Labels, e.unescaped, e.Time = nil, e.Labels[:0], e.unescaped[:0], time.Time{}
	b := trimBlank(line)
	if len(b) == 0 || b[0] == '#' {
		return false, nil
	}
	n := nameLength(b, true)
	e.Name, b = b[:n], trimBlank(b[n:])
	if len(b) > 0 && b[0] == '{' {
		if b, err = e.labels(b[1:]); err != nil {
			return false, err
		}
	}
	if len(e.Name) == 0 {
		return false, noSample("it does not begin with a name")
	}
	return true, e.number(trimBlank(b))
}

// labels reads what follows an opening brace and returns what follows the
// closing one.
func (e *Exposition) labels(b []byte) ([]byte, error) {
	for {
		b = trimBlank(b)
		if len(b) > 0 && b[0] == '}' {
			return b[1:], nil
		}
		name, rest, err := e.labelName(b)
		if err != nil {
			return nil, err
		}
		b = trimBlank(rest)
		switch {
		case len(b) > 0 && b[0] == '=':
			var value []byte
			if value, b, err = e.quoted(trimBlank(b[1:])); err != nil {
				return nil, err
			}
			if err := e.addLabel(name, value); err != nil {
				return nil, err
			}
		case len(e.Name) == 0 && len(name) > 0:
			e.Name = name // {"a name with any characters", label="value"}
		default:
			return nil, noSample("a label has no value")
		}
		b = trimBlank(b)
		if len(b) == 0 || b[0] != ',' && b[0] != '}' {
			return nil, noSample("its labels do not end")
		}
		if b[0] == ',' {
			b = b[1:]
		}
	}
}

func (e *Exposition) labelName(b []byte) (name, rest []byte, err error) {
	if len(b) > 0 && b[0] == '"' {
		return e.quoted(b)
	}
	n := nameLength(b, false)
	if n == 0 {
		return nil, nil, noSample("a label has no name")
	}
	return b[:n], b[n:], nil
}

func (e *Exposition) addLabel(name, value []byte) error {
	if len(e.Labels) == maxLabels {
		return noSample(fmt.Sprintf("it has more than %d labels", maxLabels))
	}
	for _, l := range e.Labels {
		if bytes.Equal(l.Name, name) {
			return noSample("a label stands there twice")
		}
	}
	e.Labels = append(e.Labels, Label{name, value})
	return nil
}

// quoted reads a string in quotes and returns what follows it.
func (e *Exposition) quoted(b []byte) (text, rest []byte, err error) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, noSample("a label's value is not in quotes")
	}
	b = b[1:]
	end := bytes.IndexAny(b, `"\`)
	if end >= 0 && b[end] == '"' {
		text, rest = b[:end], b[end+1:]
	} else if text, rest, err = e.unescape(b); err != nil {
		return nil, nil, err
	}
	if !utf8.Valid(text) {
		return nil, nil, noSample("a label's value is not UTF-8")
	}
	return text, rest, nil
}

// unescape reads up to the closing quote.
func (e *Exposition) unescape(b []byte) (text, rest []byte, err error) {
	begin := len(e.unescaped)
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch c {
		case '"':
			// What was handed out before keeps its array if this append moved it.
			return e.unescaped[begin:len(e.unescaped):len(e.unescaped)], b[i+1:], nil
		case '\\':
			i++
			switch {
			case i < len(b) && (b[i] == '\\' || b[i] == '"'):
				c = b[i]
			case i < len(b) && b[i] == 'n':
				c = '\n'
			default:
				return nil, nil, noSample("a label's value has an unknown escape")
			}
		}
		e.unescaped = append(e.unescaped, c)
	}
	return nil, nil, noSample("a label's value does not end")
}

// number reads value, timestamp and exemplar.
func (e *Exposition) number(b []byte) (err error) {
	e.Raw, b = word(b)
	if e.Value, err = expositionFloat(e.Raw); err != nil {
		return noSample("it has no value")
	}
	stamp, rest := word(trimBlank(b))
	if e.OpenMetrics && bytes.HasPrefix(stamp, []byte("#")) {
		return nil
	}
	rest = trimBlank(rest)
	if len(rest) > 0 && (!e.OpenMetrics || rest[0] != '#') {
		return noSample("there is more after its end")
	}
	if len(stamp) == 0 {
		return nil
	}
	if e.Time, err = e.timestamp(stamp); err != nil {
		return noSample("its timestamp is not a number")
	}
	return nil
}

func (e *Exposition) timestamp(b []byte) (time.Time, error) {
	if !e.OpenMetrics {
		ms, err := strconv.ParseInt(string(b), 10, 64)
		return time.UnixMilli(ms).UTC(), err
	}
	v, err := expositionFloat(b)
	if err != nil {
		return time.Time{}, err
	}
	at, ok := epochTime(b, v)
	if !ok || math.IsInf(v, 0) {
		return time.Time{}, strconv.ErrRange
	}
	if bytes.ContainsAny(b, "eE") {
		at = at.Round(time.Microsecond) // a float64 holds no more of today's seconds
	}
	return at, nil
}

// expositionFloat reads a number as Go does, without its hexadecimal and
// underscored forms.
func expositionFloat(b []byte) (float64, error) {
	if bytes.ContainsAny(b, "pP_") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(string(b), 64)
}

// Text returns what to keep of the value's text, as Sample.Text.
func (e *Exposition) Text() string { return textOf(e.Raw, e.Value) }

// AppendSeries appends the sample's name and labels, in their order, as the
// format writes them.
func (e *Exposition) AppendSeries(dst []byte) []byte {
	dst = append(dst, e.Name...)
	for i, l := range e.Labels {
		if i == 0 {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		dst = append(append(dst, l.Name...), '=')
		dst = strconv.AppendQuote(dst, string(l.Value))
	}
	if len(e.Labels) > 0 {
		dst = append(dst, '}')
	}
	return dst
}

// word returns the bytes before the first blank, and the rest.
func word(b []byte) (first, rest []byte) {
	if i := bytes.IndexAny(b, " \t"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

func trimBlank(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// nameLength returns the length of the name of a metric or a label that b begins
// with.
func nameLength(b []byte, colon bool) int {
	if len(b) == 0 || isDigit(b[0]) {
		return 0
	}
	i := 0
	for i < len(b) && (isWord(b[i]) || colon && b[i] == ':') {
		i++
	}
	return i
}
