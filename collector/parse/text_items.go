package parse

import (
	"bytes"
	"regexp"
	"slices"
	"unicode"

	"github.com/vernier-ml/vernier/collector"
)

// NewTextItems returns a Text that reads `loss: 0.25`, as Keras, XGBoost and many
// tutorials print it, 'loss': 0.25 or "loss": 0.25, as a Python dictionary or an object
// of JSON in a line, and `loss 0.25`, as print("loss", loss) does, in place of
// name=value.
//
// It is stricter than Text, because more lines look so. A word before a name without
// quotes belongs to it, so that `valid loss: 0.25` is no value of loss. What follows a
// number must end it: see goesOn. An ambiguous number is passed over. Without a colon the
// number has a point or an exponent.
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
	after := line[end:]
	if len(after) == 0 {
		return nil, 0
	}
	quote := after[0]
	quoted := quote == '\'' || quote == '"'
	if quoted {
		after = after[1:]
	}
	value, colon := bytes.CutPrefix(trimLeft(after), []byte(":"))
	if !colon && (quoted || len(value) == len(after)) {
		return nil, 0
	}
	number, v = itemValue(trimLeft(value))
	if len(number) == 0 || !colon && !bytes.ContainsAny(number, ".eEnN") || !beginsName(line[:at], quoted, quote) {
		return nil, 0
	}
	return number, v
}

// beginsName reports whether a name may begin after b, or within a quote.
func beginsName(b []byte, quoted bool, quote byte) bool {
	switch {
	case len(b) == 0:
		return !quoted
	case quoted:
		return b[len(b)-1] == quote
	}
	return (b[len(b)-1] == '|' || !endsInName(b)) && !followsWord(b)
}

// maxWord bounds how far back a word is looked for, in bytes.
const maxWord = 40

// followsWord reports whether what comes after b, and a blank or more, goes on with a word
// and so belongs to it. What begins with a digit is none: `Epoch 5 loss`, `37ms loss`.
func followsWord(b []byte) bool {
	b = b[max(0, len(b)-maxWord):]
	before := bytes.TrimRight(b, " ")
	rest := bytes.TrimRightFunc(before, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) })
	word := before[len(rest):]
	return len(before) < len(b) && len(word) > 0 && !isDigit(word[0]) && scanWord(word) == 0 && !slices.Contains(logLevels, string(word))
}

// logLevels may stand before a message.
var logLevels = []string{"DEBUG", "INFO", "WARNING", "WARN", "ERROR"}

// wrapper is what numpy 2 puts before a number in a dictionary, np.float64(0.25), and what
// PyTorch puts there.
var wrapper = regexp.MustCompile(`^(?:(?:np|numpy|torch)\.)?(?:float\d*|int\d*|array|tensor)\(`)

// itemValue returns the number that b begins with, perhaps in quotes or what wraps it,
// as it is written, and its value. It is empty if there is none, or more of it.
func itemValue(b []byte) (number []byte, v float64) {
	closing := ""
	if w := wrapper.Find(b[:min(len(b), maxWord)]); w != nil {
		b, closing = b[len(w):], ")"
	} else if len(b) > 0 && (b[0] == '\'' || b[0] == '"') {
		b, closing = b[1:], string(b[0])
	}
	v, n, ok := scanGrouped(b)
	if !ok || n == 0 {
		return nil, 0
	}
	rest, closed := bytes.CutPrefix(b[n:], []byte(closing))
	if !closed || goesOn.Match(rest[:min(len(rest), maxWord)]) {
		return nil, 0
	}
	return b[:n], v
}

// goesOn is what makes a number the part of another text: a letter or sign right behind
// it, tqdm's bar behind its percentage, a part of the whole, a unit, a list, and a mean in
// brackets behind the value of a batch, `6.9 (7.0)`. A point or a colon is one of the
// sentence.
var goesOn = regexp.MustCompile(`^(?:[^\s,;|)\]}>+%.:]|[.:]\S|%[^\s,;|)\]}>.]|%\||,?\s+[\d/]|\s+(?:of|ms|s|sec)\b|\s*\(\s*[-+]?\d*[.eE])`)
