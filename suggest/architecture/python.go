package architecture

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The training programs read what Python's json.dumps writes, with each " turned
// into '. What follows writes the same text, so that a program that compares or
// splits it finds what it knows.

// float writes a number as Python's repr does.
func float(x float64) string {
	if a := math.Abs(x); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(x, 'e', -1, 64)
	}
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// quote writes a string in single quotes, with everything but ASCII escaped.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range text {
		short := strings.IndexRune("\b\f\n\r\t", r)
		switch {
		case short >= 0:
			b.WriteString(`\` + "bfnrt"[short:short+1])
		case r < ' ' || r > '~':
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// list writes literals as a list.
func list(literals []string) string { return "[" + strings.Join(literals, ", ") + "]" }

// ints writes whole numbers as a list.
func ints(numbers []int) string {
	literals := make([]string, len(numbers))
	for i, n := range numbers {
		literals[i] = strconv.Itoa(n)
	}
	return list(literals)
}

// pair is an entry of a dictionary; the value is a literal.
type pair struct{ key, value string }

// dictionary writes pairs in their order.
func dictionary(pairs ...pair) string {
	literals := make([]string, len(pairs))
	for i, p := range pairs {
		literals[i] = quote(p.key) + ": " + p.value
	}
	return "{" + strings.Join(literals, ", ") + "}"
}
