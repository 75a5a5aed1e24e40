package parse

import (
	"bytes"
	"regexp"
	"unicode"
	"unicode/utf8"

	"github.com/vernier-ml/vernier/collector"
)

// NewTextItems returns a Text that reads `loss: 0.25`, as Keras, XGBoost and many
// tutorials print it, 'loss': 0.25 or "loss": 0.25, as a Python dictionary or an object
// of JSON in a line, and `loss 0.25`, as print("loss", loss) does, in place of
// name=value.
//
// It is stricter than Text, because more lines look so. A word right before a name
// without quotes belongs to it, so that `valid loss: 0.25` is no value of loss. What
// follows a number must end it, so that `accuracy: 9918/10000` and `time: 37ms` have
// none, and an ambiguous number is passed over. Without a colon the number has a point or
// an exponent, and is not the one before a mean in brackets, `Acc@1 0.39 ( 0.10)`.
func NewTextItems(metrics []string) *Text {
	t, _ := NewText(metrics, nil) // only filters have errors
	t.items = true
	return t
}

// allItems finds the items of a line.
func (t *Text) allItems(dst []collector.Point, line []byte) []collector.Point {
	start := len(dst)
	for _, name := range t.names {
		for next := 0; ; {
			k := bytes.Index(line[next:], []byte(name))
			if k < 0 {
				break
			}
			at := next + k
			next = at + len(name)
			if number, v := itemAt(line, at, next); len(number) > 0 {
				dst = append(dst, collector.Point{Metric: name, Value: v, Text: textOf(number, v), Seq: int64(at)})
			}
		}
	}
	return distinct(dst, start)
}

// itemAt returns the number of the name line[at:end], as it is written, and its value;
// nothing if the name is a part of another or has no number.
func itemAt(line []byte, at, end int) (number []byte, v float64) {
	before, after := line[:at], line[end:]
	if len(after) == 0 || endsInName(before) && before[at-1] != '|' {
		return nil, 0
	}
	quote := after[0]
	quoted := quote == '\'' || quote == '"'
	if quoted {
		if len(before) == 0 || before[at-1] != quote {
			return nil, 0
		}
		after = after[1:]
	} else if followsWord(before) {
		return nil, 0
	}
	value, colon := bytes.CutPrefix(trimLeft(after), []byte(":"))
	if colon {
		number, v, _ = itemValue(trimLeft(value))
		return number, v
	}
	if quoted || len(value) == len(after) {
		return nil, 0
	}
	number, v, rest := itemValue(value)
	if !bytes.ContainsAny(number, ".eEnN") || bytes.HasPrefix(trimLeft(rest), []byte("(")) {
		return nil, 0
	}
	return number, v
}

// followsWord reports whether what comes after b, and one blank, belongs to a word.
func followsWord(b []byte) bool {
	before := bytes.TrimSuffix(b, []byte(" "))
	last, _ := utf8.DecodeLastRune(before)
	return len(before) < len(b) && unicode.IsLetter(last) && !logLevel.Match(before)
}

// logLevel ends what stands before a message.
var logLevel = regexp.MustCompile(`\b(?:DEBUG|INFO|WARNING|WARN|ERROR)$`)

// wrapper is what numpy 2 puts before a number in a dictionary, np.float64(0.25).
var wrapper = regexp.MustCompile(`^[A-Za-z_][\w.]*\(`)

// itemValue returns the number that b begins with, perhaps in quotes or what wraps it,
// as it is written, its value, and what follows. It is empty if there is none, or more
// of it.
func itemValue(b []byte) (number []byte, v float64, rest []byte) {
	closing := ""
	if w := wrapper.Find(b); w != nil {
		b, closing = b[len(w):], ")"
	} else if len(b) > 0 && (b[0] == '\'' || b[0] == '"') {
		b, closing = b[1:], string(b[0])
	}
	v, n, ok := scanGrouped(b)
	if !ok || n == 0 {
		return nil, 0, nil
	}
	rest, closed := bytes.CutPrefix(b[n:], []byte(closing))
	if rest = bytes.TrimPrefix(rest, []byte("%")); !closed || !endsNumber(rest) {
		return nil, 0, nil
	}
	return b[:n], v, rest
}

// endsNumber reports whether a number may stand before b. A point or a colon is one of
// the sentence.
func endsNumber(b []byte) bool {
	if len(b) > 0 && (b[0] == '.' || b[0] == ':') {
		b = b[1:]
		return len(b) == 0 || isSpace(b[0])
	}
	return len(b) == 0 || isSpace(b[0]) || bytes.IndexByte([]byte(",;|)]}>+"), b[0]) >= 0
}
