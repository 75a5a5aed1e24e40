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
// It is stricter than Text, because more lines look like this. A word before a name
// without quotes is part of the name, so `valid loss: 0.25` is not a value of loss. A
// number that is ambiguous, or part of something else (see goesOn), is passed over.
// Without a colon the number needs a point or an exponent.
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

// itemAt returns the number after the name line[at:end], as written, and its value. It
// returns nothing if the name is part of a longer one or no number follows.
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

// followsWord reports whether b ends with a word and one or more blanks, so that the name
// after it is the rest of a longer one. Numbers and units (`Epoch 5 loss`, `37ms loss`),
// nan and log levels are not such words.
func followsWord(b []byte) bool {
	b = b[max(0, len(b)-maxWord):]
	before := bytes.TrimRight(b, " ")
	rest := bytes.TrimRightFunc(before, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) })
	word := before[len(rest):]
	return len(before) < len(b) && len(word) > 0 && !isDigit(word[0]) && scanWord(word) == 0 && !slices.Contains(logLevels, string(word))
}

// logLevels may stand before a message.
var logLevels = []string{"DEBUG", "INFO", "WARNING", "WARN", "ERROR"}

// wrapper matches what numpy 2 and PyTorch print before a number in a dictionary, as in
// np.float64(0.25).
var wrapper = regexp.MustCompile(`^(?:(?:np|numpy|torch)\.)?(?:float\d*|int\d*|array|tensor)\(`)

// itemValue returns the number that b begins with, as written, without quotes or wrapper,
// and its value. It returns nothing if there is no number or it is part of something else.
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

// goesOn matches what follows a number that is part of something else: a letter or sign
// right after it, tqdm's bar after a percentage, the rest of a fraction, a unit, a list, or
// a mean in brackets after the value of a batch, `6.9 (7.0)`. A point or colon before a
// blank or the end of the line is punctuation.
var goesOn = regexp.MustCompile(`^(?:[^\s,;|)\]}>+%.:]|[.:]\S|%[^\s,;|)\]}>.]|%\||,?\s+[\d/]|\s+(?:of|ms|s|sec)\b|\s*\(\s*[-+]?\d*[.eE])`)
