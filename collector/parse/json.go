package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/vernier-ml/vernier/collector"
)

const (
	// maxDepth bounds the nesting of the objects that NewAnyJSON looks into.
	maxDepth = 64
	// namesRoom and namesFactor bound the names that NewAnyJSON finds in one text,
	// in bytes and beside that in lengths of the text: a long key is a part of the
	// name of every value below it.
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
// seconds (below 10^11), milliseconds, microseconds or nanoseconds since 1970.
// "time" and "ts" are the time when there is no timestamp and they are RFC 3339
// or have the digits of the present time. "global_step", "step", "iteration" or
// "iter", "epoch" is the step. A line that is not a JSON object is an error; an
// empty line is not.
type JSON struct {
	record
	any   bool // every key that holds a number
	room  int  // for more names, in bytes, if any
	alone bool // each object says its own step, whatever was before
}

var _ Line = (*JSON)(nil)

// NewJSON returns a parser of the named metrics.
func NewJSON(metrics []string) *JSON { return &JSON{record: newRecord(metrics)} }

// NewAnyJSON returns a parser that takes every number, under its key or path
// of keys, except times and steps. An object whose names take many times more
// space than itself is an error.
func NewAnyJSON() *JSON { return &JSON{any: true, record: record{epochs: newEpochs()}} }

// Parse implements Line. On error nothing is appended.
func (j *JSON) Parse(dst []collector.Point, line []byte) ([]collector.Point, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return dst, nil
	}
	return j.parse(dst, line, false)
}

// ParseAll reads an object or a list of objects, which may span lines. On error
// nothing is appended.
func (j *JSON) ParseAll(dst []collector.Point, text []byte) ([]collector.Point, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return dst, nil
	}
	j.alone = true
	defer func() { j.alone = false }()
	return j.parse(dst, text, true)
}

func (j *JSON) parse(dst []collector.Point, text []byte, list bool) ([]collector.Point, error) {
	text = bytes.TrimPrefix(text, byteOrderMark)
	whole, err := decoded(text)
	out := dst
	switch {
	case err != nil:
	case list && whole.IsArray():
		j.room = namesRoom + namesFactor*len(text)
		whole.ForEach(func(_, one gjson.Result) bool {
			before := len(out)
			out, err = j.object(out, one)
			for i := range out[before:] {
				out[before+i].Seq += int64(before - len(dst))
			}
			return err == nil
		})
	default:
		j.room = namesRoom + namesFactor*len(text)
		out, err = j.object(dst, whole)
	}
	if err != nil {
		return dst, fmt.Errorf("%.60q is not a JSON object: %w", text[:min(len(text), 240)], err)
	}
	return out, nil
}

// pythonWord is NaN or Infinity as Python writes it, or a string, which may hold
// these words too.
var pythonWord = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b`)

// decoded reads a JSON text.
func decoded(text []byte) (gjson.Result, error) {
	if json.Valid(text) {
		return gjson.ParseBytes(text), nil
	}
	if bytes.Contains(text, []byte("NaN")) || bytes.Contains(text, []byte("Infinity")) {
		text = pythonWord.ReplaceAllFunc(text, func(word []byte) []byte {
			if word[0] == '"' {
				return word
			}
			return []byte(`"` + string(word) + `"`)
		})
	}
	var valid json.RawMessage
	if err := json.Unmarshal(text, &valid); err != nil { // which says what is wrong
		return gjson.Result{}, err
	}
	return gjson.ParseBytes(text), nil
}

// object reads one object with its metrics, its step and its time.
func (j *JSON) object(dst []collector.Point, object gjson.Result) ([]collector.Point, error) {
	if !object.IsObject() {
		return dst, errors.New("no object")
	}
	if j.any {
		j.record.index, j.record.found = map[string]int{}, nil
	}
	if j.alone {
		j.record.Reset()
	}
	j.record.begin()
	j.members(object, "", 0)
	if j.room < 0 {
		return dst, errors.New("the paths of its keys are too long for so many values")
	}
	return j.record.end(dst), nil
}

// members reads an object whose keys go behind a prefix.
func (j *JSON) members(object gjson.Result, prefix string, depth int) {
	object.ForEach(func(key, value gjson.Result) bool {
		path := prefix + key.Str
		switch value.Type {
		case gjson.Number:
			j.value(path, value.Raw, depth)
		case gjson.String:
			j.value(path, value.Str, depth)
		case gjson.JSON:
			if value.IsObject() && depth < maxDepth && j.leads(path+".") {
				j.members(value, path+".", depth+1)
			}
		}
		return j.room >= 0
	})
}

// leads reports whether a wanted name may begin with a path.
func (j *JSON) leads(path string) bool {
	if j.any {
		j.room -= len(path)
		return true
	}
	for name := range j.record.index {
		if strings.HasPrefix(name, path) {
			return true
		}
	}
	return false
}

// value takes the text of a number, or of a string, under a path.
func (j *JSON) value(path, text string, depth int) {
	reserved := depth == 0 && j.record.key(path, text)
	i, ok := j.record.index[path]
	if j.any && !reserved && path != "" {
		if _, n := scanNumber([]byte(text)); n == len(text) && !ok {
			j.room -= len(path)
			i, ok = len(j.record.found), j.room >= 0
			j.record.index[path], j.record.found = i, append(j.record.found, collector.Point{})
		}
	}
	if ok && text != "" {
		j.record.found[i] = wholeSample(path, []byte(text))
	}
}
