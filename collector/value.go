package collector

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
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

// UnixNano returns a time as nanoseconds in 64 bits; ok is false outside the years
// 1678 to 2261, which do not fit.
func UnixNano(t time.Time) (nanos int64, ok bool) {
	if y := t.Year(); y < 1678 || y > 2261 {
		return 0, false
	}
	return t.UnixNano(), true
}

// FormatValue is the shortest form of a number from which it can be read again.
func FormatValue(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Written returns the value as text: as the source wrote it, unless that is a
// number in a notation for people, such as 97.5% or 1,234.5, which a
// reader of an observation would not take for one; then in the shortest form.
func (p Point) Written() string {
	if p.Text != "" {
		_, err := strconv.ParseFloat(p.Text, 64)
		if err == nil || errors.Is(err, strconv.ErrRange) || math.IsNaN(p.Value) {
			return p.Text
		}
	}
	return FormatValue(p.Value)
}
