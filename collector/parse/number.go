package parse

import (
	"bytes"
	"math"
	"regexp"
	"strconv"

	"github.com/vernier-ml/vernier/collector"
)

// maxText bounds the text that is kept of one value, in bytes.
const maxText = 1024

// scanNumber reads the number that b begins with and returns its length, 0 if
// there is none. The grammar is that of Katib's filter,
// [+-]?\d*(\.\d+)?([Ee][+-]?\d+)? with at least one digit, and besides "1.e-3",
// and nan, inf and infinity in any case, where no word character follows.
func scanNumber(b []byte) (v float64, n int) {
	first := sign(b)
	if n = scanWord(b[first:]); n > 0 {
		v, _ = strconv.ParseFloat(string(b[first:first+n]), 64) // it knows these words
		if b[0] == '-' {
			v = -v
		}
		return v, first + n
	}
	whole := digits(b[first:])
	n = first + whole
	switch point := n < len(b) && b[n] == '.'; {
	case point && n+1 < len(b) && isDigit(b[n+1]):
		n += 1 + digits(b[n+1:])
	case whole == 0:
		return 0, 0
	case point && exponent(b[n+1:]) > 0:
		n++
	}
	n += exponent(b[n:])
	return parseFloat(b[:n]), n
}

// parseFloat reads a decimal number. What is out of range is infinite or 0.
func parseFloat(b []byte) float64 {
	v, _ := strconv.ParseFloat(string(b), 64) // a decimal has no other error
	return v
}

var (
	// joined are digits with commas, points or underscores between them, as far as
	// they reach.
	joined = regexp.MustCompile(`^[+-]?\d+(?:[.,_]\d+)+(?:[Ee][+-]?\d+)?`)
	// grouped are digits in groups of three.
	grouped = regexp.MustCompile(`^[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:_\d{3})+)(?:\.\d+)?(?:[Ee][+-]?\d+)?$`)
	// points are digits in groups of three parted by points, before a decimal
	// comma.
	points = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}(?:\.\d{3})+,\d+(?:[^.\d]|$)`)
)

// scanGrouped is scanNumber for text written for people, where a comma may follow
// the first digits: groups of three digits parted by commas are one number when
// there are several or a decimal point follows ("1,234,567", "1,234.5"), those
// parted by underscores always. Other digits after a comma make it ambiguous
// ("0,31", "1,234", which may be a decimal comma), and so do other groups
// ("1.234,56", "1.2.3") and what may be hexadecimal ("0x10"); ok is then false and
// n the length of what is.
func scanGrouped(b []byte) (v float64, n int, ok bool) {
	v, n = scanNumber(b)
	if n == 0 || n+1 >= len(b) {
		return v, n, true
	}
	plain := allDigits(b[sign(b):n])
	switch next := isDigit(b[n+1]); {
	case (b[n] == 'x' || b[n] == 'X') && b[n-1] == '0' && isWord(b[n+1]):
		return 0, n + 2, false
	case next && (b[n] == '.' || plain && (b[n] == ',' || b[n] == '_')):
	case next && b[n] == ',' && points.Match(b):
	default:
		return v, n, true
	}
	whole := joined.Find(b)
	if whole == nil {
		return v, n, true // after an exponent
	}
	if !grouped.Match(whole) || bytes.Count(whole, []byte(",")) == 1 && bytes.IndexByte(whole, '.') < 0 {
		return 0, len(whole), false
	}
	return parseFloat(withoutGroups(whole)), len(whole), true
}

func withoutGroups(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte(","), nil), []byte("_"), nil)
}

// wholeNumber reads text whose extent is known (what a filter captured, a string,
// a cell), so that a comma or a percent sign can only be a part of the number:
// "1,234" and "1_234" are 1234, "97.5%" is 97.5. A point at the end is that of "21.", as
// numpy prints an array of floats, or of a sentence. ok is false when text is not a number.
func wholeNumber(text []byte) (v float64, ok bool) {
	text = bytes.TrimSuffix(text, []byte("%"))
	if n := len(text) - 1; n > 0 && text[n] == '.' && isDigit(text[n-1]) {
		text = text[:n]
	}
	if bytes.ContainsAny(text, ",_") {
		if !grouped.Match(text) {
			return 0, false
		}
		text = withoutGroups(text)
	}
	v, n := scanNumber(text)
	return v, n > 0 && n == len(text)
}

// isAbsent reports whether a cell or a word says that there is no value: Keras'
// CSVLogger writes NA in each epoch without a validation, Python prints None.
func isAbsent(text []byte) bool {
	switch string(text) {
	case "", "NA", "N/A", "None", "null":
		return true
	}
	return false
}

// wholeSample reads a whole text as a value, NaN if it is not a number.
func wholeSample(metric string, text []byte) collector.Point {
	v, ok := wholeNumber(text)
	if !ok {
		return collector.Point{Metric: metric, Value: math.NaN(), Text: kept(text), Step: collector.NoStep}
	}
	return collector.Point{Metric: metric, Value: v, Text: textOf(text, v), Step: collector.NoStep}
}

// textOf returns what to keep of the text of a number: nothing if it is the
// shortest form.
func textOf(raw []byte, v float64) string {
	var buf [32]byte
	if plain(raw, v) || bytes.Equal(strconv.AppendFloat(buf[:0], v, 'g', -1, 64), raw) {
		return ""
	}
	return kept(raw)
}

// plain reports whether a number surely is written in its shortest form, as most are,
// which is much faster than to write it: with at most 15 digits, no exponent, and
// nothing that could be left out.
func plain(raw []byte, v float64) bool {
	if a := math.Abs(v); len(raw) > 16 || a < 1e-4 || a >= 1e6 {
		return false
	}
	whole, fraction, point := bytes.Cut(bytes.TrimPrefix(raw, []byte("-")), []byte("."))
	return allDigits(whole) && (whole[0] != '0' || len(whole) == 1) &&
		(!point || allDigits(fraction) && fraction[len(fraction)-1] != '0')
}

func kept(text []byte) string { return string(text[:min(len(text), maxText)]) }

// sign returns the length of a sign.
func sign(b []byte) int {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		return 1
	}
	return 0
}

// exponent returns the length of an exponent with digits.
func exponent(b []byte) int {
	if len(b) < 2 || b[0]|0x20 != 'e' {
		return 0
	}
	n := 1 + sign(b[1:])
	if d := digits(b[n:]); d > 0 {
		return n + d
	}
	return 0
}

// scanWord returns the length of nan, inf or infinity, where no word character
// follows.
func scanWord(b []byte) int {
	if len(b) < 3 || b[0]|0x20 != 'n' && b[0]|0x20 != 'i' {
		return 0
	}
	n := 0
	for n < len(b) && n < 9 && isWord(b[n]) {
		n++
	}
	for _, word := range []string{"nan", "inf", "infinity"} {
		if foldEqual(b[:n], word) {
			return n
		}
	}
	return 0
}

// foldEqual compares b with a lower-case ASCII word, in any case.
func foldEqual(b []byte, word string) bool {
	return len(b) == len(word) && bytes.EqualFold(b, []byte(word))
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}

func allDigits(b []byte) bool { return len(b) > 0 && digits(b) == len(b) }

func isDigit(c byte) bool { return c-'0' <= 9 }

// isWord is \w of Go's regular expressions.
func isWord(c byte) bool { return isDigit(c) || c|0x20-'a' < 26 || c == '_' }

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }

func trimLeft(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}
