package parse

import (
	"fmt"
	"time"
)

// maxDepth bounds the nesting of a JSON line.
const maxDepth = 64

const (
	// maxKnown and maxKnownBytes bound the names that NewAnyJSON remembers.
	maxKnown      = 4096
	maxKnownBytes = 1 << 20
	// namesRoom and namesFactor bound the names that one text has, in bytes and
	// beside that in lengths of the text: a long key is a part of the name of every
	// value below it.
	namesRoom   = 64 << 10
	namesFactor = 16
)

// JSON reads lines that hold one JSON object each, such as
// {"epoch": 3, "loss": 0.25, "val": {"loss": "0.3"}}.
//
// A metric is the value under the key of its name, or under the path of keys
// that its name spells with dots: "val.loss" above. Where an object has a
// metric twice, the last counts, as it does for Python and Go. The value is a
// number, or a string; a string that is not a number is kept as text. NaN,
// Infinity and -Infinity, which Python's json writes, are numbers. A number that
// a float64 does not hold exactly is kept as text too. Other values (true, null,
// lists, objects) are not values of a metric.
//
// At the top of the object, "timestamp" is the time: RFC 3339, or a number of
// seconds (below 10^11), milliseconds, microseconds or nanoseconds since 1970,
// exact to the nanosecond. "time" and "ts" are the time when there is no
// timestamp and they are RFC 3339 or have the digits of the present time.
// "global_step", "step", "iteration" or "iter", "epoch" is the step. A line that
// is not a JSON object is an error; an empty line is not.
type JSON struct {
	names []*metricName          // nil: every key that holds a number
	known map[string]*metricName // the keys seen, when names is nil
	bytes int                    // of known
	room  int                    // for more names, in bytes
	scan  jsonScan
	picks picks
	steps stepFinder
	time  stamp
}

var _ Line = (*JSON)(nil)

// NewJSON returns a parser of the named metrics.
func NewJSON(metrics []string) (*JSON, error) {
	names, err := wantedNames(metrics)
	if err != nil {
		return nil, err
	}
	return &JSON{names: names}, nil
}

// NewAnyJSON returns a parser that takes every number, under its key or path
// of keys, except times and steps. An object whose names take many times more
// space than itself is an error.
func NewAnyJSON() *JSON { return &JSON{known: map[string]*metricName{}} }

// Parse implements Line. On error nothing is appended.
func (j *JSON) Parse(dst []Sample, line []byte) ([]Sample, error) {
	j.reset(line)
	if j.scan.peek() == 0 && j.scan.at == len(line) {
		return dst, nil
	}
	out, err := j.object(dst)
	if err == nil && j.scan.skipSpace() < len(line) {
		err = j.scan.fail("more after its end")
	}
	j.scan.release()
	if err != nil {
		return dst, notJSON(line, err)
	}
	return out, nil
}

// ParseAll reads an object or a list of objects, which may span lines. On error
// nothing is appended.
func (j *JSON) ParseAll(dst []Sample, text []byte) ([]Sample, error) {
	j.reset(text)
	if j.scan.peek() != '[' {
		return j.Parse(dst, text)
	}
	out, err := dst, error(nil)
	for more := j.scan.open(']'); more && err == nil; {
		if out, err = j.object(out); err == nil {
			more, err = j.scan.next(']')
		}
	}
	if err == nil && j.scan.skipSpace() < len(text) {
		err = j.scan.fail("more after its end")
	}
	j.scan.release()
	if err != nil {
		return dst, notJSON(text, err)
	}
	return out, nil
}

func (j *JSON) reset(text []byte) {
	j.scan.reset(text)
	j.room = namesRoom + namesFactor*len(text)
}

func notJSON(line []byte, err error) error {
	return fmt.Errorf("%.60q is not a JSON object: %w", line[:min(len(line), 240)], err)
}

// object reads one object with its metrics, its step and its time.
func (j *JSON) object(dst []Sample) ([]Sample, error) {
	if j.scan.peek() != '{' {
		return dst, j.scan.fail("no object")
	}
	j.steps, j.time = newStepFinder(), stamp{}
	j.picks.begin(dst)
	err := j.members(0, 0)
	if err == nil && j.room < 0 {
		err = j.scan.fail("the paths of its keys are too long for so many values")
	}
	out := j.picks.end(j.steps.step, j.time.at)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// members reads an object at the scanner's place. Its keys go behind the first
// bytes of the path, of which there are prefix.
func (j *JSON) members(prefix, depth int) error {
	s := &j.scan
	if depth > maxDepth {
		return s.fail("nested too deeply")
	}
	var err error
	for more := s.open('}'); more && err == nil; {
		var key []byte
		if key, err = s.key(); err != nil {
			return err
		}
		path := key
		if prefix > 0 {
			s.path = append(append(s.path[:prefix], '.'), key...)
			path = s.path
		}
		if err = j.value(path, depth); err == nil {
			more, err = s.next('}')
		}
	}
	return err
}

// value reads the value of the key that the path names.
func (j *JSON) value(path []byte, depth int) error {
	s := &j.scan
	at := s.at
	switch s.peek() {
	case '{':
		if depth == 0 {
			s.path = append(s.path[:0], path...)
		}
		return j.members(len(path), depth+1)
	case '[':
		return s.skip(depth + 1)
	case '"':
		text, err := s.str()
		if err == nil {
			j.text(path, depth, at, text)
		}
		return err
	}
	raw, v, err := s.literal()
	if err != nil || raw == nil {
		return err
	}
	if depth == 0 && j.reserved(path, raw, v) && j.names == nil {
		return nil
	}
	if m := j.metric(path); m != nil {
		j.picks.number(m, raw, v, at)
	}
	return nil
}

// text takes a value that is a string.
func (j *JSON) text(path []byte, depth, at int, text []byte) {
	v := scanDecimal(text)
	isNumber := v.n > 0 && v.n == len(text)
	if depth == 0 {
		if isNumber {
			if j.reserved(path, text, v) && j.names == nil {
				return
			}
		} else {
			j.time.offer(path, text)
		}
	}
	if j.names == nil && !isNumber || len(text) == 0 {
		return
	}
	if m := j.metric(path); m != nil {
		j.picks.text(m, text, at)
	}
}

// reserved takes a number at the top of the object that is a time or a step.
func (j *JSON) reserved(key, raw []byte, v number) bool {
	if j.time.offer(key, raw) {
		return true
	}
	rank := rankOf(key)
	if rank == noRank {
		return false
	}
	if step, ok := integral(v.value); ok {
		j.steps.set(rank, step)
	}
	return true
}

// metric returns the metric that the path names, nil if it is not wanted.
func (j *JSON) metric(path []byte) *metricName {
	if j.names == nil {
		return j.anyMetric(path)
	}
	for _, m := range j.names {
		if m.name == string(path) {
			return m
		}
	}
	return nil
}

func (j *JSON) anyMetric(path []byte) *metricName {
	if len(path) == 0 {
		return nil
	}
	if j.room -= len(path); j.room < 0 {
		return nil // the object tells
	}
	m, ok := j.known[string(path)]
	if !ok {
		if j.bytes += len(path); len(j.known) >= maxKnown || j.bytes > maxKnownBytes {
			clear(j.known)
			j.bytes = len(path)
		}
		m = &metricName{name: string(path)}
		j.known[m.name] = m
	}
	return m
}

// stamp keeps the time of a record.
type stamp struct {
	at   time.Time
	sure bool // from "timestamp", which is better than the others
}

// isTime reports whether a key may say the time of its record.
func isTime(key string) bool { return key == "timestamp" || key == "time" || key == "ts" }

// offer takes the value of a key if that says the time, and reports whether the
// key can mean nothing else.
func (s *stamp) offer(key, value []byte) bool {
	switch string(key) {
	case "timestamp":
		if t, ok := timeOf(value); ok {
			s.at, s.sure = t, true
		}
		return true
	case "time", "ts":
		if t, ok := stampOf(value); ok && !s.sure {
			s.at = t
			return true
		}
	}
	return false
}
