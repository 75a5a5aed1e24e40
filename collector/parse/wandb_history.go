package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// The names that W&B itself gives to what it logs begin with an underscore.
const (
	wandbStep      = "_step"
	wandbTimestamp = "_timestamp"
)

// maxWandbText bounds the JSON of one value that is read; numbers are shorter.
const maxWandbText = 4096

var errWandbValues = fmt.Errorf("it has more than %d values", maxWandbValues)

// history yields the samples of the record at hand, which lies at start.
func (w *Wandb) history(start int64, emit func(collector.Point) bool) (ok bool, err error) {
	var out []collector.Point
	m := message{whole: w.record}
	for m.next() {
		if m.key == 2<<3|wireBytes {
			if out, err = w.historyRecord(out, start+int64(m.begins()), m.bytes()); err != nil {
				return true, err
			}
		}
	}
	if m.err != nil {
		return true, m.err
	}
	for _, s := range out {
		if !emit(s) {
			return false, nil
		}
	}
	return true, nil
}

// historyRecord reads HistoryRecord{1 repeated item, 2 step{1 num}}.
func (w *Wandb) historyRecord(out []collector.Point, start int64, record []byte) ([]collector.Point, error) {
	first, step, at := len(out), collector.NoStep, time.Time{}
	m := message{whole: record}
	for m.next() {
		switch m.key {
		case 1<<3 | wireBytes:
			name, value, err := wandbItem(m.bytes())
			if err != nil {
				return nil, err
			}
			switch name {
			case wandbStep:
				if v, n := scanNumber(value); n > 0 && n == len(value) {
					step, _ = Step(v)
				}
			case wandbTimestamp:
				at, _ = since1970(string(value))
			default:
				if s, ok := w.sample(name, value); ok {
					s.Seq = start + int64(m.begins())
					out = append(out, s)
				}
			}
			if len(out) > maxWandbValues {
				return nil, errWandbValues
			}
		case 2<<3 | wireBytes:
			if step == collector.NoStep {
				step = stepNumber(m.bytes())
			}
		}
	}
	for i := first; i < len(out); i++ {
		out[i].Step, out[i].Time = step, at.Round(time.Microsecond)
	}
	return out, m.err
}

// stepNumber reads HistoryStep{1 num}, which is left out when it is 0.
func stepNumber(b []byte) int64 {
	step := int64(0)
	m := message{whole: b}
	for m.next() {
		if m.key == 1<<3|wireVarint {
			step = max(int64(m.value), collector.NoStep)
		}
	}
	if m.err != nil {
		return collector.NoStep
	}
	return step
}

// wandbItem reads HistoryItem{1 key, 2 repeated nested_key, 16 value_json}.
func wandbItem(b []byte) (name string, value []byte, err error) {
	var key []byte
	m := message{whole: b}
	for m.next() {
		switch m.key {
		case 1<<3 | wireBytes:
			if len(key) == 0 {
				key = append(key, m.bytes()...)
			}
		case 2<<3 | wireBytes:
			if len(key) > 0 {
				key = append(key, '.')
			}
			key = append(key, m.bytes()...)
		case 16<<3 | wireBytes:
			value = bytes.TrimSpace(m.bytes())
		}
	}
	return string(key), value, m.err
}

// sample reads a value that is a number, or a string; ok is false for others, and for
// a metric that is not wanted.
func (w *Wandb) sample(name string, value []byte) (s collector.Point, ok bool) {
	wanted := w.names[name]
	if w.names == nil {
		wanted = name != "" && name[0] != '_' && len(name) <= maxWandbName
	}
	if !wanted || len(value) == 0 || len(value) > maxWandbText {
		return s, false
	}
	if value[0] == '"' {
		var text string
		if w.names == nil || json.Unmarshal(value, &text) != nil {
			return s, false
		}
		value = []byte(strings.TrimSpace(text))
	} else if _, n := scanNumber(value); n != len(value) {
		return s, false // a list, an object, true, false or null
	}
	return wholeSample(name, value), len(value) > 0
}
