package parse

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
)

// The forms of a time: RFC 3339, and the same with a space as Python prints it.
// A fraction may follow the seconds.
const (
	formRFC3339 = "2006-01-02T15:04:05Z07:00"
	formSpace   = "2006-01-02 15:04:05Z07:00"
)

// scanRFC3339 reads text that has the form of an RFC 3339 time with a zone. Digits
// after the ninth of a fraction are dropped.
func scanRFC3339(text string) (time.Time, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || text[4] != '-' || text[13] != ':' {
		return time.Time{}, false
	}
	form := formRFC3339
	if text[10] == ' ' {
		form = formSpace
	}
	t, err := time.Parse(form, text)
	return t.UTC(), err == nil
}

// since1970 reads a decimal number as a time since 1970, in the unit that its size
// tells: seconds until the year 5138, else milliseconds, microseconds or
// nanoseconds, which are thus from 1973 on. It is exact to the nanosecond, as a
// float64 is not, or to the microsecond where the number has an exponent.
func since1970(text string) (time.Time, bool) {
	text = strings.TrimPrefix(text, "+")
	if strings.ContainsAny(text, "eE") {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Abs(v) >= 1e19 {
			return time.Time{}, false
		}
		t, ok := since1970(strconv.FormatFloat(v, 'f', -1, 64))
		return t.Round(time.Microsecond), ok
	}
	whole, fraction, _ := strings.Cut(text, ".")
	whole, negative := strings.CutPrefix(whole, "-")
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return time.Time{}, false
	}
	whole = strings.TrimLeft(whole, "0")
	places := 0 // from the unit to seconds
	switch n := len(whole); {
	case n > 19:
		return time.Time{}, false
	case n > 17:
		places = 9
	case n > 14:
		places = 6
	case n > 11:
		places = 3
	}
	all := "000000000" + whole + fraction + "000000000"
	point := len("000000000") + len(whole) - places
	seconds, err := strconv.ParseInt(all[:point], 10, 64)
	nanos, err2 := strconv.ParseInt(all[point:point+9], 10, 64)
	if negative {
		seconds, nanos = -seconds, -nanos
	}
	return time.Unix(seconds, nanos).UTC(), err == nil && err2 == nil
}

// floatTime returns a time in seconds since 1970.
func floatTime(v float64) (time.Time, bool) {
	if !(math.Abs(v) <= 1<<38) {
		return time.Time{}, false
	}
	whole := math.Floor(v)
	return time.Unix(int64(whole), int64((v-whole)*1e9+0.5)).UTC(), true
}

// timeOf reads a whole text as RFC 3339 or as a time since 1970.
func timeOf(text string) (time.Time, bool) {
	if t, ok := scanRFC3339(text); ok {
		return t, true
	}
	return since1970(text)
}

// stampOf is timeOf for places where another number may stand too: a number
// counts only if it has as many digits before the point as the present time has
// in some unit (10, 13, 16 or 19: from 2001 to 2286).
func stampOf(text string) (time.Time, bool) {
	if t, ok := scanRFC3339(text); ok {
		return t, true
	}
	whole, _, _ := strings.Cut(text, ".")
	switch len(whole) {
	case 10, 13, 16, 19:
		if whole[0] != '0' && digits([]byte(whole)) == len(whole) && !strings.ContainsAny(text, "eE") {
			return since1970(text)
		}
	}
	return time.Time{}, false
}

// leadingTime reads the first word of a line, also in brackets, as a time.
func leadingTime(line []byte) time.Time {
	line = bytes.TrimPrefix(trimLeft(line), []byte("["))
	if len(line) < 10 || !isDigit(line[0]) {
		return time.Time{}
	}
	end := endOfWord(line, 0)
	if end == len("2006-01-02") && line[4] == '-' && end < len(line) && line[end] == ' ' {
		end = endOfWord(line, end+1)
	}
	if end > maxStamp {
		return time.Time{}
	}
	t, _ := stampOf(string(line[:end]))
	return t
}

// maxStamp bounds a time in a line, in bytes.
const maxStamp = 64

// endOfWord returns the place of the first blank or closing bracket from a place
// on.
func endOfWord(b []byte, from int) int {
	for from < len(b) && !isSpace(b[from]) && b[from] != ']' {
		from++
	}
	return from
}
