package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
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
func (w *Wandb) history(start int64, emit func(Sample) bool) (ok bool, err error) {
	w.out = w.out[:0]
	base := len(w.record) // of the message at hand: how much of the record is left
	for b := w.record; len(b) > 0; {
		f, rest, err := nextField(b)
		if err != nil {
			return true, err
		}
		if f.number == 2 && f.wire == wireBytes {
			at := base - len(rest) - len(f.bytes)
			if err := w.historyRecord(start+int64(at), f.bytes); err != nil {
				return true, err
			}
		}
		b = rest
	}
	for _, s := range w.out {
		if !emit(s) {
			return false, nil
		}
	}
	return true, nil
}

// historyRecord reads HistoryRecord{1 repeated item, 2 step{1 num}}.
func (w *Wandb) historyRecord(start int64, message []byte) error {
	first, step, at := len(w.out), NoStep, time.Time{}
	for b := message; len(b) > 0; {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		switch {
		case f.number == 1 && f.wire == wireBytes:
			value, err := w.item(f.bytes)
			if err != nil {
				return err
			}
			switch name := string(w.key); name {
			case wandbStep:
				if v, n := scanNumber(value); n > 0 && n == len(value) {
					step, _ = integral(v)
				}
			case wandbTimestamp:
				if v, n := scanNumber(value); n > 0 && n == len(value) {
					at, _ = epochTime(value, v)
				}
			default:
				w.sample(name, value, int(start)+len(message)-len(rest)-len(f.bytes))
			}
			if len(w.out) > maxWandbValues {
				return errWandbValues
			}
		case f.number == 2 && f.wire == wireBytes && step == NoStep:
			step = stepNumber(f.bytes)
		}
		b = rest
	}
	for i := first; i < len(w.out); i++ {
		w.out[i].Step, w.out[i].Time = step, at.Round(time.Microsecond)
	}
	return nil
}

// stepNumber reads HistoryStep{1 num}, which is left out when it is 0.
func stepNumber(b []byte) int64 {
	step := int64(0)
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return NoStep
		}
		if f.number == 1 && f.wire == wireVarint {
			step = max(int64(f.value), NoStep)
		}
		b = rest
	}
	return step
}

// item reads HistoryItem{1 key, 2 repeated nested_key, 16 value_json}. Its name
// is then in w.key.
func (w *Wandb) item(b []byte) (value []byte, err error) {
	w.key = w.key[:0]
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return nil, err
		}
		switch {
		case f.wire != wireBytes:
		case f.number == 1 && len(w.key) == 0:
			w.key = append(w.key, f.bytes...)
		case f.number == 2:
			if len(w.key) > 0 {
				w.key = append(w.key, '.')
			}
			w.key = append(w.key, f.bytes...)
		case f.number == 16:
			value = bytes.TrimSpace(f.bytes)
		}
		b = rest
	}
	return value, nil
}

// sample takes a value that is a number, or a string.
func (w *Wandb) sample(name string, value []byte, offset int) {
	known, ok := w.names[name]
	if !ok {
		if !w.any || name == "" || name[0] == '_' || len(name) > maxWandbName {
			return
		}
		if len(w.names) >= maxKnown {
			clear(w.names)
		}
		known = strings.Clone(name)
		w.names[known] = known
	}
	if len(value) == 0 || len(value) > maxWandbText {
		return
	}
	if value[0] == '"' {
		var text string
		if json.Unmarshal(value, &text) != nil || strings.TrimSpace(text) == "" || w.any {
			return
		}
		raw := []byte(strings.TrimSpace(text))
		s := Sample{Metric: known, Value: math.NaN(), Text: string(raw[:min(len(raw), maxText)]), Offset: offset}
		if v, ok := wholeNumber(raw); ok {
			s.Value, s.Text = v.value, textOf(raw, v.value)
		}
		w.out = append(w.out, s)
		return
	}
	if v, n := scanNumber(value); n > 0 && n == len(value) {
		w.out = append(w.out, Sample{Metric: known, Value: v, Text: textOf(value, v), Offset: offset})
	}
}
