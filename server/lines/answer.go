package lines

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/suggest"
)

// trial is a proposal with its number.
type trial struct {
	number   int
	proposal suggest.Proposal
}

func appendTrials(b []byte, id any, space suggest.Space, trials []trial, exhausted bool) []byte {
	b = append(b, `{"trials":[`...)
	for i, t := range trials {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTrial(b, space, t)
	}
	b = append(b, `],"exhausted":`...)
	b = strconv.AppendBool(b, exhausted)
	return appendID(b, id)
}

func appendTrial(b []byte, space suggest.Space, t trial) []byte {
	p := t.proposal
	b = append(b, `{"number":`...)
	b = strconv.AppendInt(b, int64(t.number), 10)
	b = append(b, `,"params":{`...)
	first := true
	for i, v := range p.Point {
		if !v.IsSet() {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendText(b, space.At(i).Name())
		b = append(b, ':')
		b = appendValue(b, space.At(i).Kind(), v)
	}
	b = append(b, '}')
	if p.Resource > 0 {
		b = append(b, `,"resource":`...)
		b = appendNumber(b, p.Resource)
	}
	if len(p.Meta) > 0 {
		b = append(b, `,"meta":{`...)
		for i, name := range sortedKeys(p.Meta) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, name)
			b = append(b, ':')
			b = appendText(b, p.Meta[name])
		}
		b = append(b, '}')
	}
	if p.Why != "" {
		b = append(b, `,"why":`...)
		b = appendText(b, p.Why)
	}
	if p.Fallback != "" {
		b = append(b, `,"fallback":`...)
		b = appendText(b, p.Fallback)
	}
	return append(b, '}')
}

// appendValue writes a category as a string and a number as the user wrote it,
// if JSON allows that.
func appendValue(b []byte, kind suggest.Kind, v suggest.Value) []byte {
	text := v.String()
	switch {
	case kind == suggest.Categorical:
		return appendText(b, text)
	case isNumber(text):
		return append(b, text...)
	}
	return appendNumber(b, v.Float())
}

// appendNumber writes a finite number, the shortest that reads back the same.
func appendNumber(b []byte, x float64) []byte {
	text, err := json.Marshal(x)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}

// appendText writes a JSON string, as readable as can be.
func appendText(b []byte, text string) []byte {
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0 {
		b = append(b, '"')
		b = append(b, text...)
		return append(b, '"')
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return append(b, `""`...)
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

func appendTold(b []byte, id any, assigned []int) []byte {
	b = append(b, `{"ok":true`...)
	for i, number := range assigned {
		if i == 0 {
			b = append(b, `,"numbers":[`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(number), 10)
	}
	if len(assigned) > 0 {
		b = append(b, ']')
	}
	return appendID(b, id)
}

func appendStop(b []byte, id any, stop bool, why string) []byte {
	b = append(b, `{"stop":`...)
	b = strconv.AppendBool(b, stop)
	if stop && why != "" {
		b = append(b, `,"why":`...)
		b = appendText(b, why)
	}
	return appendID(b, id)
}

func appendError(b []byte, id any, err error) []byte {
	b = append(b, `{"error":`...)
	b = appendText(b, err.Error())
	return appendID(b, id)
}

// appendID ends an answer, with the request's id if it had one.
func appendID(b []byte, id any) []byte {
	switch id := id.(type) {
	case string:
		b = append(b, `,"id":`...)
		b = appendText(b, id)
	case json.Number:
		b = append(b, `,"id":`...)
		b = append(b, id.String()...)
	}
	return append(b, '}')
}
