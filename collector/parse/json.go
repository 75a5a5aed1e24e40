package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// maxDepth bounds the nesting of a JSON line.
const maxDepth = 64

// maxKnown bounds the names that NewAnyJSON remembers.
const maxKnown = 4096

// JSON reads lines that hold one JSON object each, such as
// {"epoch": 3, "loss": 0.25, "val": {"loss": "0.3"}}.
//
// A metric is the value under the key of its name, or under the path of keys
// that its name spells with dots: "val.loss" above. The value is a number, or a
// string; a string that is not a number is kept as text. NaN, Infinity and
// -Infinity, which Python's json writes, are numbers. Other values (true, null,
// lists, objects) are not values of a metric.
//
// At the top of the object, "timestamp" is the time: RFC 3339, or seconds since
// 1970 as a number, with a fraction; and "global_step", "step", "iteration" or
// "epoch" is the step. A line that is not a JSON object is an error; an empty
// line is not.
type JSON struct {
	names []string // empty: every key that holds a number
	known map[string]string
	scan  jsonScan
}

var _ Line = (*JSON)(nil)

// NewJSON returns a parser of the named metrics.
func NewJSON(metrics []string) (*JSON, error) {
	names, err := wanted(metrics)
	if err != nil {
		return nil, err
	}
	return &JSON{names: names}, nil
}

// NewAnyJSON returns a parser that takes every number, under its key or path
// of keys, except times and steps.
func NewAnyJSON() *JSON { return &JSON{known: map[string]string{}} }

// Parse implements Line.
func (j *JSON) Parse(dst []Sample, line []byte) ([]Sample, error) {
	if len(trimLeft(line)) == 0 {
		return dst, nil
	}
	j.scan.reset(line)
	out, err := j.object(dst)
	if err == nil && j.scan.peek() != 0 {
		err = j.scan.fail("more after its end")
	}
	if err != nil {
		return dst, notJSON(line, err)
	}
	return out, nil
}

// ParseAll reads an object or a list of objects, which may span lines. On error
// nothing is appended.
func (j *JSON) ParseAll(dst []Sample, text []byte) ([]Sample, error) {
	j.scan.reset(text)
	if j.scan.peek() != '[' {
		return j.Parse(dst, text)
	}
	j.scan.at++
	out := dst
	err := j.scan.items(']', func() (err error) {
		out, err = j.object(out)
		return err
	})
	if err == nil && j.scan.peek() != 0 {
		err = j.scan.fail("more after its end")
	}
	if err != nil {
		return dst, notJSON(text, err)
	}
	return out, nil
}

func notJSON(line []byte, err error) error {
	return fmt.Errorf("%.60q is not a JSON object: %w", line[:min(len(line), 240)], err)
}

// object reads one object with its metrics, its step and its time.
func (j *JSON) object(dst []Sample) ([]Sample, error) {
	start := len(dst)
	o := jsonObject{JSON: j, out: dst, steps: newStepFinder()}
	j.scan.path = j.scan.path[:0]
	if j.scan.peek() != '{' {
		return dst, j.scan.fail("no object")
	}
	if err := o.members(0); err != nil {
		return dst, err
	}
	for i := start; i < len(o.out); i++ {
		o.out[i].Step, o.out[i].Time = o.steps.step, o.time
	}
	return o.out, nil
}

// jsonObject is an object that is being read.
type jsonObject struct {
	*JSON
	out   []Sample
	steps stepFinder
	time  time.Time
}

// members reads an object at the scanner's place.
func (o *jsonObject) members(depth int) error {
	s := &o.scan
	if depth > maxDepth {
		return s.fail("nested too deeply")
	}
	s.at++
	return s.items('}', func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.fail("no colon after a key")
		}
		s.at++
		before := len(s.path)
		if before > 0 {
			s.path = append(s.path, '.')
		}
		s.path = append(s.path, key...)
		err = o.value(depth)
		s.path = s.path[:before]
		return err
	})
}

// value reads the value of the key that the path names.
func (o *jsonObject) value(depth int) error {
	s := &o.scan
	switch s.peek() {
	case '{':
		return o.members(depth + 1)
	case '[':
		return s.skip(depth + 1)
	case '"':
		at := s.at
		text, err := s.str()
		if err == nil {
			o.text(depth, at, text)
		}
		return err
	}
	at := s.at
	raw, v, err := s.literal()
	if err != nil || raw == nil {
		return err
	}
	if depth == 0 && o.reserved(raw, v) {
		if o.known != nil {
			return nil
		}
	}
	if name, ok := o.metric(); ok {
		o.out = append(o.out, Sample{Metric: name, Value: v, Text: textOf(raw, v), Offset: at})
	}
	return nil
}

// text takes a value that is a string.
func (o *jsonObject) text(depth, at int, text []byte) {
	v, n := scanNumber(text)
	isNumber := n > 0 && n == len(text)
	if depth == 0 {
		var t time.Time
		if string(o.scan.path) == "timestamp" && t.UnmarshalText(text) == nil {
			o.time = t
		} else if isNumber && o.reserved(text, v) && o.known != nil {
			return
		}
	}
	if o.known != nil && !isNumber {
		return
	}
	if name, ok := o.metric(); ok && len(text) > 0 {
		o.out = append(o.out, valueSample(name, text, at))
	}
}

// reserved takes a number at the top of the object that is a time or a step.
func (o *jsonObject) reserved(raw []byte, v float64) bool {
	if string(o.scan.path) == "timestamp" {
		if t, ok := epochTime(raw, v); ok {
			o.time = t
		}
		return true
	}
	rank := rankOf(o.scan.path)
	o.steps.offer(rank, v)
	return rank < len(stepNames)
}

// metric returns the metric that the path names, if it is wanted.
func (o *jsonObject) metric() (string, bool) {
	path := o.scan.path
	if o.known != nil {
		name, ok := o.known[string(path)]
		if !ok {
			if len(o.known) >= maxKnown {
				clear(o.known)
			}
			name = string(path)
			o.known[name] = name
		}
		return name, len(path) > 0
	}
	for _, n := range o.names {
		if n == string(path) {
			return n, true
		}
	}
	return "", false
}

// epochTime reads seconds since 1970. The digits of the fraction are taken as
// written where there is no exponent, since a float64 holds microseconds only.
func epochTime(raw []byte, v float64) (time.Time, bool) {
	if math.IsNaN(v) || math.Abs(v) > 1<<38 {
		return time.Time{}, false
	}
	whole, frac := math.Modf(v)
	nanos := int64(math.Round(frac * 1e9))
	if dot := bytes.IndexByte(raw, '.'); dot >= 0 && !bytes.ContainsAny(raw, "eE") {
		nanos = 0
		for i := range 9 {
			nanos *= 10
			if dot+1+i < len(raw) {
				nanos += int64(raw[dot+1+i] - '0')
			}
		}
		if v < 0 {
			nanos = -nanos
		}
	}
	return time.Unix(int64(whole), nanos).UTC(), true
}

// jsonScan walks over JSON text.
type jsonScan struct {
	b    []byte
	at   int
	path []byte
}

func (s *jsonScan) reset(b []byte) { s.b, s.at, s.path = b, 0, s.path[:0] }

func (s *jsonScan) fail(why string) error { return fmt.Errorf("%s at byte %d", why, s.at) }

// peek skips white space and returns the next byte, or 0 at the end.
func (s *jsonScan) peek() byte {
	for s.at < len(s.b) {
		if c := s.b[s.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
		s.at++
	}
	return 0
}

// items calls each for every element up to the closing byte.
func (s *jsonScan) items(closing byte, each func() error) error {
	if s.peek() == closing {
		s.at++
		return nil
	}
	for {
		s.peek()
		if err := each(); err != nil {
			return err
		}
		switch c := s.peek(); c {
		case ',':
			s.at++
		case closing:
			s.at++
			return nil
		default:
			return s.fail("unfinished list or object")
		}
	}
}

// str reads a string. The result is valid until the next call.
func (s *jsonScan) str() ([]byte, error) {
	if s.at >= len(s.b) || s.b[s.at] != '"' {
		return nil, s.fail("no string")
	}
	begin := s.at
	odd := false
	for i := begin + 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.at = i + 1
			if !odd {
				return s.b[begin+1 : i], nil
			}
			var text string
			if err := json.Unmarshal(s.b[begin:s.at], &text); err != nil {
				return nil, err
			}
			return []byte(text), nil
		case c == '\\':
			odd = true
			i++
		case c < ' ':
			return nil, s.fail("control character in a string")
		}
	}
	return nil, errors.New("unfinished string")
}

// literal reads a number, true, false or null; raw is nil unless a number.
func (s *jsonScan) literal() (raw []byte, v float64, err error) {
	rest := s.b[s.at:]
	for _, w := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(rest, []byte(w)) && (len(rest) == len(w) || !isWord(rest[len(w)])) {
			s.at += len(w)
			return nil, 0, nil
		}
	}
	v, n := scanNumber(rest)
	if n == 0 || n < len(rest) && (isWord(rest[n]) || rest[n] == '.') {
		return nil, 0, s.fail("no value")
	}
	s.at += n
	return rest[:n], v, nil
}

// skip passes over any value.
func (s *jsonScan) skip(depth int) error {
	if depth > maxDepth {
		return s.fail("nested too deeply")
	}
	switch s.peek() {
	case '[':
		s.at++
		return s.items(']', func() error { return s.skip(depth + 1) })
	case '{':
		s.at++
		return s.items('}', func() error {
			if _, err := s.str(); err != nil {
				return err
			}
			if s.peek() != ':' {
				return s.fail("no colon after a key")
			}
			s.at++
			return s.skip(depth + 1)
		})
	case '"':
		_, err := s.str()
		return err
	}
	_, _, err := s.literal()
	return err
}
