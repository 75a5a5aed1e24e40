package parse

import (
	"bytes"
	"math"
	"strconv"
)

// maxText bounds the text that is kept of one value, in bytes.
const maxText = 1024

// scanNumber reads the number that b begins with and returns its length, 0 if
// there is none. The grammar is that of Katib's filter,
// [+-]?\d*(\.\d+)?([Ee][+-]?\d+)? with at least one digit, and besides nan, inf
// and infinity in any case.
func scanNumber(b []byte) (v float64, n int) {
	i := sign(b)
	if w := scanWord(b[i:]); w > 0 {
		v, _ = strconv.ParseFloat(string(b[i:i+w]), 64)
		if b[0] == '-' {
			v = -v
		}
		return v, i + w
	}
	whole := digits(b[i:])
	i += whole
	if i+1 < len(b) && b[i] == '.' && isDigit(b[i+1]) {
		i += 1 + digits(b[i+1:])
	} else if whole == 0 {
		return 0, 0
	}
	i += exponent(b[i:])
	v, _ = strconv.ParseFloat(string(b[:i]), 64) // its only possible error is a range, with v infinite
	return v, i
}

// scanGrouped is scanNumber for text written for people, where a comma may
// follow the first digits: groups of three digits parted by commas ("1,234.5")
// are one number. Other digits after a comma ("0,31") make it ambiguous; n is
// then the length of what is.
func scanGrouped(b []byte) (v float64, n int, ok bool) {
	first := sign(b)
	i := first + digits(b[first:])
	if i == first || i+1 >= len(b) || b[i] != ',' || !isDigit(b[i+1]) {
		v, n = scanNumber(b)
		return v, n, true
	}
	ok = i-first <= 3 && b[first] != '0'
	for i+1 < len(b) && b[i] == ',' && isDigit(b[i+1]) {
		d := digits(b[i+1:])
		ok = ok && d == 3
		i += 1 + d
	}
	if !ok {
		return 0, i, false
	}
	if i+1 < len(b) && b[i] == '.' && isDigit(b[i+1]) {
		i += 1 + digits(b[i+1:])
	}
	i += exponent(b[i:])
	v, _ = strconv.ParseFloat(string(bytes.ReplaceAll(b[:i], []byte(","), nil)), 64)
	return v, i, true
}

// sign returns the length of a sign.
func sign(b []byte) int {
	if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
		return 1
	}
	return 0
}

func exponent(b []byte) int {
	if len(b) < 2 || b[0]|0x20 != 'e' {
		return 0
	}
	i := 1
	if b[i] == '+' || b[i] == '-' {
		i++
	}
	if d := digits(b[i:]); d > 0 {
		return i + d
	}
	return 0
}

// scanWord returns the length of nan, inf or infinity, where no word character
// follows.
func scanWord(b []byte) int {
	if len(b) < 3 || b[0]|0x20 != 'n' && b[0]|0x20 != 'i' {
		return 0
	}
	for _, w := range [...]string{"infinity", "nan", "inf"} {
		if len(b) < len(w) || !foldEqual(b[:len(w)], w) {
			continue
		}
		if len(b) == len(w) || !isWord(b[len(w)]) {
			return len(w)
		}
	}
	return 0
}

// foldEqual compares b with a lower-case ASCII word, in any case.
func foldEqual(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		if b[i] != word[i] && (b[i] < 'A' || b[i] > 'Z' || b[i]|0x20 != word[i]) {
			return false
		}
	}
	return true
}

func digits(b []byte) int {
	i := 0
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWord is \w of Go's regular expressions.
func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }

func trimLeft(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}

// textOf returns what to keep of the text of a number: nothing if it is the
// shortest form.
func textOf(raw []byte, v float64) string {
	if plain(raw) {
		return ""
	}
	var buf [32]byte
	if bytes.Equal(strconv.AppendFloat(buf[:0], v, 'g', -1, 64), raw) {
		return ""
	}
	return string(raw[:min(len(raw), maxText)])
}

// plain says quickly that a decimal is its own shortest form: at most 15
// digits, no needless zero or sign, and no size that 'g' writes with an
// exponent. False means unknown.
func plain(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	whole := digits(b)
	if whole == 0 || whole > 6 || len(b) > 16 || b[0] == '0' && whole > 1 {
		return false
	}
	if whole == len(b) {
		return true
	}
	frac := b[whole+1:]
	if b[whole] != '.' || digits(frac) != len(frac) || len(frac) == 0 || frac[len(frac)-1] == '0' {
		return false
	}
	return b[0] != '0' || frac[0] != '0'
}

// integral returns v as a step. Steps are whole numbers from 0 to 2^53.
func integral(v float64) (int64, bool) {
	if v < 0 || v > 1<<53 || v != math.Trunc(v) {
		return NoStep, false
	}
	return int64(v), true
}
