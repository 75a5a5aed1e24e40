package collector

import (
	"math"
	"strconv"
	"strings"
)

// ParseValue reads a value that was sent as text. text is what to keep beside the
// number: the value as it was written where that differs from the shortest form
// of the number, and what is no number (value is then NaN). It is cut to limit
// bytes of valid UTF-8.
func ParseValue(written string, limit int) (value float64, text string) {
	trimmed := strings.TrimSpace(written)
	value, err := strconv.ParseFloat(trimmed, 64)
	switch {
	case err != nil && !math.IsInf(value, 0): // a number out of range is infinite
		value, text = math.NaN(), written
	case math.IsNaN(value) || math.IsInf(value, 0) && err == nil:
	case trimmed != FormatValue(value):
		text = trimmed
	}
	return value, strings.ToValidUTF8(text[:min(len(text), limit)], "?")
}

// FormatValue is the shortest form of a number from which it can be read again.
func FormatValue(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
