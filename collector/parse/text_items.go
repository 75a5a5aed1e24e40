package parse

import (
	"bytes"
	"regexp"
	"unicode"
	"unicode/utf8"

	"github.com/vernier-ml/vernier/collector"
)

// NewTextItems returns a Text that reads `loss: 0.25`, as Keras, XGBoost and many
// tutorials print it, and 'loss': 0.25 or "loss": 0.25, as a Python dictionary or an
// object of JSON in a line, in place of name=value.
//
// It is stricter than Text, because more lines look so. A word right before a name
// without quotes belongs to it, so that `valid loss: 0.25` is no value of loss. What
// follows a number must end it, so that `accuracy: 9918/10000` and `time: 37ms` have
// none, and an ambiguous number is passed over.
func NewTextItems(metrics []string) *Text {
	t, _ := NewText(metrics, nil) // only filters have errors
	t.items = true
	return t
}

// wrapper is what numpy 2 puts before a number in a dictionary, np.float64(0.25).
var wrapper = regexp.MustCompile(`^[A-Za-z_][\w.]*\(`)

// colons finds name: value.
func (t *Text) colons(dst []collector.Point, line []byte) []collector.Point {
	for start, next := len(dst), 0; ; {
		k := bytes.IndexByte(line[next:], ':')
		if k < 0 {
			return distinct(dst, start)
		}
		name, at := t.itemBefore(line[:next+k])
		next += k + 1
		if name == "" {
			continue
		}
		if number, v := itemValue(trimLeft(line[next:])); len(number) > 0 {
			dst = append(dst, collector.Point{Metric: name, Value: v, Text: textOf(number, v), Seq: int64(at)})
		}
	}
}

// itemBefore returns the wanted name that b ends with, perhaps in quotes, and its
// place; "" if there is none or a longer one.
func (t *Text) itemBefore(b []byte) (name string, at int) {
	b = bytes.TrimRight(b, " \t")
	quote := b[max(0, len(b)-1):]
	if quoted := len(quote) == 1 && (quote[0] == '\'' || quote[0] == '"'); quoted {
		name, at = t.nameBefore(b[:len(b)-1])
		if name != "" && !bytes.HasSuffix(b[:at], quote) {
			return "", 0
		}
		return name, at
	}
	name, at = t.nameBefore(b)
	before := bytes.TrimSuffix(b[:at], []byte(" "))
	last, _ := utf8.DecodeLastRune(before)
	if len(before) < at && unicode.IsLetter(last) && !logLevel.Match(before) {
		return "", 0
	}
	return name, at
}

// logLevel ends what stands before a message.
var logLevel = regexp.MustCompile(`\b(?:DEBUG|INFO|WARNING|WARN|ERROR)$`)

// itemValue returns the number that b begins with, perhaps in quotes or what wraps it,
// as it is written, and its value. It is empty if there is none, or more of it.
func itemValue(b []byte) (number []byte, v float64) {
	closing := ""
	if w := wrapper.Find(b); w != nil {
		b, closing = b[len(w):], ")"
	} else if len(b) > 0 && (b[0] == '\'' || b[0] == '"') {
		b, closing = b[1:], string(b[0])
	}
	v, n, ok := scanGrouped(b)
	if !ok || n == 0 {
		return nil, 0
	}
	rest, closed := bytes.CutPrefix(b[n:], []byte(closing))
	if !closed {
		return nil, 0
	}
	rest = bytes.TrimPrefix(rest, []byte("%"))
	if len(rest) > 1 && rest[0] == '.' && isSpace(rest[1]) || string(rest) == "." { // of a sentence
		rest = nil
	}
	if len(rest) > 0 && !isSpace(rest[0]) && bytes.IndexByte([]byte(",;|)]}>+"), rest[0]) < 0 {
		return nil, 0
	}
	return b[:n], v
}
