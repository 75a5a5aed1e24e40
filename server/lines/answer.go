package lines

import (
	"bytes"
	"encoding/json"

	"github.com/vernier-ml/vernier/suggest"
)

// The answers. ID is that of the request, nil when it had none.
type (
	asked struct {
		Trials    []proposed `json:"trials"`
		Exhausted bool       `json:"exhausted"`
		ID        any        `json:"id,omitempty"`
	}
	learned struct {
		OK      bool  `json:"ok"`
		Numbers []int `json:"numbers,omitempty"` // of trials that were told without one
		ID      any   `json:"id,omitempty"`
	}
	judged struct {
		Stop bool   `json:"stop"`
		Why  string `json:"why,omitempty"`
		ID   any    `json:"id,omitempty"`
	}
	failed struct {
		Error string `json:"error"`
		ID    any    `json:"id,omitempty"`
	}
)

// proposed is a proposal with its number.
type proposed struct {
	Number   int          `json:"number"`
	Params   params       `json:"params"`
	Resource float64      `json:"resource,omitempty"`
	Meta     suggest.Meta `json:"meta,omitempty"`
	Why      string       `json:"why,omitempty"`
	Fallback string       `json:"fallback,omitempty"`
	Seed     *uint32      `json:"seed,omitempty"` // in studies that repeat trials
}

// params are a point's values by name, in the order of the space.
type params struct {
	space suggest.Space
	point suggest.Point
}

// MarshalJSON writes a category as a string and a number as the user wrote it, if
// JSON allows that.
func (p params) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, v := range p.point {
		if !v.IsSet() {
			continue
		}
		var value any = v.Float()
		if text := v.String(); p.space.At(i).Kind() == suggest.Categorical {
			value = text
		} else if isNumber(text) {
			value = json.Number(text)
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, encode(p.space.At(i).Name())...), ':')
		b = append(b, encode(value)...)
	}
	return append(b, '}'), nil
}

// encode writes JSON without a newline, as readable as can be.
func encode(v any) []byte {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil { // of a number that JSON does not have
		return []byte("null")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
