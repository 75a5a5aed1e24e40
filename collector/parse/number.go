package parse

import (
	"bytes"
	"strconv"
	"strings"
)

// maxText bounds the text that is kept of one value, in bytes.
const maxText = 1024

// pow10 holds the powers of ten that a float64 holds exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// number is what scanDecimal read.
type number struct {
	value float64
	// n is the length, 0 if there was no number.
	n int
	// short: what was written is certainly the shortest form of value. False
	// means unknown.
	short bool
}

// scanNumber reads the number that b begins with, as scanDecimal does, and
// returns its length, 0 if there is none.
func scanNumber(b []byte) (v float64, n int) {
	d := scanDecimal(b)
	return d.value, d.n
}

// scanDecimal reads the number that b begins with. The grammar is that of
// Katib's filter, [+-]?\d*(\.\d+)?([Ee][+-]?\d+)? with at least one digit, and
// besides nan, inf and infinity in any case.
//
// A decimal of at most 19 digits whose digits fit into 53 bits and whose power
// of ten is exact needs one operation, which rounds once (Clinger 1990, "How to
// read floating point numbers accurately"). Longer ones of at most 19 digits
// need a division of integers, and all others go through strconv.
func scanDecimal(b []byte) number {
	i := sign(b)
	if i == len(b) {
		return number{}
	}
	if b[i] != '.' && !isDigit(b[i]) {
		return scanSpecial(b, i)
	}
	var m uint64
	first := i
	for ; i < len(b) && isDigit(b[i]); i++ {
		m = m*10 + uint64(b[i]-'0')
	}
	whole := i - first
	fraction := 0
	if i+1 < len(b) && b[i] == '.' && isDigit(b[i+1]) {
		point := i
		for i++; i < len(b) && isDigit(b[i]); i++ {
			m = m*10 + uint64(b[i]-'0')
		}
		fraction = i - point - 1
	} else if whole == 0 {
		return number{}
	}
	mantissa := i
	if i < len(b) && b[i]|0x20 == 'e' {
		i += exponent(b[i:])
	}
	out := number{n: i}
	if i != mantissa || whole+fraction > 19 {
		out.value, _ = strconv.ParseFloat(string(b[:i]), 64) // its only possible error is a range, with an infinite value
		return out
	}
	if m <= 1<<52 {
		// There are fewer numbers of as many digits than float64s.
		out.value, out.short = float64(m)/pow10[fraction], true
	} else {
		out.value, out.short = quotient(m, fraction)
	}
	out.short = out.short && plain(b[first:i], whole, fraction)
	if first == 1 {
		if b[0] == '-' {
			out.value = -out.value
		} else {
			out.short = false
		}
	}
	return out
}

// plain reports whether a decimal without sign and exponent is written as 'g'
// writes it when all its digits are needed: without needless zeros, and of a
// size that has no exponent. False means unknown.
func plain(b []byte, whole, fraction int) bool {
	if whole == 0 || whole > 6 || b[0] == '0' && whole > 1 {
		return false
	}
	if fraction == 0 {
		return true
	}
	if b[len(b)-1] == '0' {
		return false
	}
	return b[0] != '0' || fraction <= 4 || string(b[2:6]) != "0000"
}

// scanSpecial reads nan, inf or infinity after a sign of i bytes.
func scanSpecial(b []byte, i int) number {
	w := scanWord(b[i:])
	if w == 0 {
		return number{}
	}
	v, _ := strconv.ParseFloat(string(b[i:i+w]), 64) // it knows these words
	if b[0] == '-' {
		v = -v
	}
	return number{value: v, n: i + w}
}

// scanGrouped is scanDecimal for text written for people, where a comma may
// follow the first digits: groups of three digits parted by commas are one
// number when there are several or a decimal point follows ("1,234,567",
// "1,234.5"). Other digits after a comma make it ambiguous ("0,31", "1,234",
// which may be a decimal comma); ok is then false and n the length of what is.
func scanGrouped(b []byte) (v number, ok bool) {
	v = scanDecimal(b)
	if v.n == len(b) || b[v.n] != ',' || v.n+1 == len(b) || !isDigit(b[v.n+1]) || !allDigits(b[sign(b):v.n]) {
		return v, true
	}
	n, groups, ok := scanGroups(b)
	if n < len(b) && b[n] == '.' && n+1 < len(b) && isDigit(b[n+1]) {
		n += 1 + digits(b[n+1:])
		groups++
	}
	if !ok || groups < 2 {
		return number{n: n}, false
	}
	n += exponent(b[n:])
	return withoutCommas(b[:n]), true
}

// scanGroups reads digits with groups after commas: n is their length, groups
// the number of commas. ok is false unless each group has three digits and the
// first one to three, without a zero at the front.
func scanGroups(b []byte) (n, groups int, ok bool) {
	first := sign(b)
	n = first + digits(b[first:])
	ok = n > first && n-first <= 3 && b[first] != '0'
	for n+1 < len(b) && b[n] == ',' && isDigit(b[n+1]) {
		d := digits(b[n+1:])
		ok = ok && d == 3
		n += 1 + d
		groups++
	}
	return n, groups, ok
}

func withoutCommas(b []byte) number {
	v, _ := strconv.ParseFloat(string(bytes.ReplaceAll(b, []byte(","), nil)), 64)
	return number{value: v, n: len(b)}
}

// wholeNumber reads text whose extent is known (what a filter captured, a
// string, a cell), so that a comma or a percent sign can only be a part of the
// number: "1,234" is 1234 and "97.5%" is 97.5. ok is false when text is no
// number.
func wholeNumber(text []byte) (v number, ok bool) {
	bare := bytes.TrimSuffix(text, []byte("%"))
	v = scanDecimal(bare)
	if v.n == 0 {
		return v, false
	}
	if v.n < len(bare) && bare[v.n] == ',' {
		n, groups, grouped := scanGroups(bare)
		if !grouped || groups == 0 {
			return v, false
		}
		if n+1 < len(bare) && bare[n] == '.' && isDigit(bare[n+1]) {
			n += 1 + digits(bare[n+1:])
		}
		n += exponent(bare[n:])
		v = withoutCommas(bare[:n])
	}
	if v.n < len(bare) {
		return v, false
	}
	if len(bare) < len(text) {
		v.n, v.short = len(text), false
	}
	return v, true
}

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

func allDigits(b []byte) bool { return len(b) > 0 && digits(b) == len(b) }

func isDigit(c byte) bool { return c-'0' <= 9 }

// isWord is \w of Go's regular expressions.
func isWord(c byte) bool { return wordByte[c] }

var wordByte = func() (table [256]bool) {
	for c := range table {
		table[c] = isDigit(byte(c)) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
	}
	return table
}()

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }

func trimLeft(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}

// textBlock is how much room for texts is made at a time, in bytes.
const textBlock = 1024

// texts makes the texts of values. Most are a few bytes ("0.50"), so they share
// blocks of memory: one allocation serves a hundred.
type texts struct{ block strings.Builder }

// of returns what to keep of the text of a number: nothing if it is the
// shortest form.
func (t *texts) of(raw []byte, v number) string {
	if v.short || shortest(raw, v.value) {
		return ""
	}
	return t.keep(raw)
}

// keep returns a copy of text, cut to maxText.
func (t *texts) keep(text []byte) string {
	text = text[:min(len(text), maxText)]
	if t.block.Cap()-t.block.Len() < len(text) {
		t.block = strings.Builder{}
		t.block.Grow(max(textBlock, len(text)))
	}
	at := t.block.Len()
	t.block.Write(text)
	return t.block.String()[at:]
}

// textOf returns what to keep of the text of a number, as texts.of does.
func textOf(raw []byte, v float64) string {
	if shortest(raw, v) {
		return ""
	}
	return string(raw[:min(len(raw), maxText)])
}

func shortest(raw []byte, v float64) bool {
	var buf [32]byte
	return bytes.Equal(strconv.AppendFloat(buf[:0], v, 'g', -1, 64), raw)
}
