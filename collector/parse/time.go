package parse

import (
	"bytes"
	"math"
	"time"
)

// scanRFC3339 reads the RFC 3339 time that b begins with, in UTC, and returns
// its length, 0 if there is none. Between date and time stands a T or, as
// Python prints it, a space. Digits after the ninth of a fraction are dropped.
func scanRFC3339(b []byte) (t time.Time, n int) {
	if len(b) < len("2006-01-02T15:04:05Z") || b[4] != '-' || b[7] != '-' || b[10] != 'T' && b[10] != ' ' || b[13] != ':' || b[16] != ':' {
		return time.Time{}, 0
	}
	century, year, month, day := two(b[0:]), two(b[2:]), two(b[5:]), two(b[8:])
	hour, minute, second := two(b[11:]), two(b[14:]), two(b[17:])
	if min(century, year, hour, minute, second) < 0 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, 0
	}
	year += 100 * century
	if month < 1 || month > 12 || day < 1 || day > daysIn(month, year) {
		return time.Time{}, 0
	}
	n = len("2006-01-02T15:04:05")
	nanos := 0
	if n+1 < len(b) && (b[n] == '.' || b[n] == ',') && isDigit(b[n+1]) {
		d := digits(b[n+1:])
		nanos = fractionOf(b[n+1 : n+1+d])
		n += 1 + d
	}
	zone, z := scanZone(b[n:])
	if z == 0 {
		return time.Time{}, 0
	}
	at := int64(daysSince1970(year, month, day))*86400 + int64(hour*3600+minute*60+second-zone)
	return time.Unix(at, int64(nanos)).UTC(), n + z
}

// scanZone reads Z or an offset such as +01:00, in seconds.
func scanZone(b []byte) (seconds, n int) {
	if len(b) > 0 && b[0] == 'Z' {
		return 0, 1
	}
	if len(b) < len("+00:00") || sign(b) == 0 || b[3] != ':' {
		return 0, 0
	}
	hours, minutes := two(b[1:]), two(b[4:])
	if min(hours, minutes) < 0 || hours > 23 || minutes > 59 {
		return 0, 0
	}
	seconds = hours*3600 + minutes*60
	if b[0] == '-' {
		seconds = -seconds
	}
	return seconds, len("+00:00")
}

// two reads two digits, or returns -1.
func two(b []byte) int {
	if !isDigit(b[0]) || !isDigit(b[1]) {
		return -1
	}
	return int(b[0]-'0')*10 + int(b[1]-'0')
}

// fractionOf returns the first nine digits after a decimal point as
// nanoseconds.
func fractionOf(digits []byte) int {
	nanos := 0
	for i := range 9 {
		nanos *= 10
		if i < len(digits) {
			nanos += int(digits[i] - '0')
		}
	}
	return nanos
}

func daysIn(month, year int) int {
	switch {
	case month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}

// daysSince1970 counts days of the Gregorian calendar. Years begin with March
// here, so that the leap day is the last one and months have a regular length:
// 153 days in five.
func daysSince1970(year, month, day int) int {
	if month <= 2 {
		year--
		month += 12
	}
	return 365*year + floorDiv(year, 4) - floorDiv(year, 100) + floorDiv(year, 400) + (153*(month-3)+2)/5 + day - 1 - 719468
}

func floorDiv(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// Of a number that is a time since 1970, the digits before the point tell the
// unit: seconds until the year 5138, and milliseconds, microseconds and
// nanoseconds from 1973 on.
const (
	secondDigits = 11
	milliDigits  = 14
	microDigits  = 17
	nanoDigits   = 19
)

// since1970 reads a decimal number as a time since 1970, from its digits and
// not by way of a float64, which holds microseconds only. Digits below the
// nanosecond are dropped.
func since1970(raw []byte) (time.Time, bool) {
	first := sign(raw)
	whole := digits(raw[first:])
	all, n := raw[first:first+whole], first+whole
	var fraction []byte
	if n < len(raw) && raw[n] == '.' {
		fraction = raw[n+1 : n+1+digits(raw[n+1:])]
		n += 1 + len(fraction)
	}
	e := exponent(raw[n:])
	power, ok := smallInt(raw[n : n+e])
	if !ok || n+e != len(raw) || whole+len(fraction) == 0 {
		return time.Time{}, false
	}
	for len(all) > 0 && all[0] == '0' {
		all = all[1:]
	}
	d := places{all, fraction}
	point := len(all) + power
	zeros := 0
	for zeros < d.len() && d.at(zeros) == 0 {
		zeros++
	}
	if zeros == d.len() {
		return time.Unix(0, 0).UTC(), true
	}
	var seconds int // how many digits are those of seconds
	switch size := point - zeros; {
	case size <= secondDigits:
		seconds = point
	case size <= milliDigits:
		seconds = point - 3
	case size <= microDigits:
		seconds = point - 6
	case size <= nanoDigits:
		seconds = point - 9
	default:
		return time.Time{}, false
	}
	var at, nanos int64
	for i := zeros; i < seconds; i++ {
		at = at*10 + d.at(i)
	}
	for i := range 9 {
		nanos = nanos*10 + d.at(seconds+i)
	}
	if raw[0] == '-' {
		at, nanos = -at, -nanos
	}
	return time.Unix(at, nanos).UTC(), true
}

// places is the digits of a number before and after its point.
type places struct{ whole, fraction []byte }

func (d places) len() int { return len(d.whole) + len(d.fraction) }

// at returns a digit; there are zeros on both sides.
func (d places) at(i int) int64 {
	switch {
	case i < 0 || i >= d.len():
		return 0
	case i < len(d.whole):
		return int64(d.whole[i] - '0')
	}
	return int64(d.fraction[i-len(d.whole)] - '0')
}

// epochTime reads seconds since 1970. The digits of the fraction are taken as
// written where there is no exponent, since a float64 holds microseconds only.
func epochTime(raw []byte, v float64) (time.Time, bool) {
	if math.IsNaN(v) || math.Abs(v) > 1<<38 {
		return time.Time{}, false
	}
	whole, frac := math.Modf(v)
	nanos := int64(math.Round(frac * 1e9))
	if dot := bytes.IndexByte(raw, '.'); dot >= 0 && !bytes.ContainsAny(raw, "eE") {
		nanos = int64(fractionOf(raw[dot+1:]))
		if v < 0 {
			nanos = -nanos
		}
	}
	return time.Unix(int64(whole), nanos).UTC(), true
}

// smallInt reads an exponent such as e+05. An empty one is 0.
func smallInt(b []byte) (v int, ok bool) {
	if len(b) == 0 {
		return 0, true
	}
	negative := b[1] == '-'
	for _, c := range b[1:] {
		if !isDigit(c) {
			continue
		}
		if v = v*10 + int(c-'0'); v > 400 {
			return 0, false
		}
	}
	if negative {
		v = -v
	}
	return v, true
}

// timeOf reads a whole text as RFC 3339 or as a time since 1970.
func timeOf(text []byte) (time.Time, bool) {
	if t, n := scanRFC3339(text); n > 0 {
		return t, n == len(text)
	}
	return since1970(text)
}

// stampOf is timeOf for places where another number may stand too: a number
// counts only if it has as many digits before the point as the present time has
// in some unit (10, 13, 16 or 19: from 2001 to 2286).
func stampOf(text []byte) (time.Time, bool) {
	if t, n := scanRFC3339(text); n > 0 {
		return t, n == len(text)
	}
	switch n := digits(text); {
	case n != 10 && n != 13 && n != 16 && n != 19 || text[0] == '0':
	case n == len(text) || text[n] == '.' && allDigits(text[n+1:]):
		return since1970(text)
	}
	return time.Time{}, false
}

// leadingTime reads the first word of a line, also in brackets, as a time.
func leadingTime(line []byte) time.Time {
	if len(line) == 0 || line[0] > '9' && line[0] != '[' {
		return time.Time{}
	}
	line = trimLeft(line)
	if len(line) > 0 && line[0] == '[' {
		line = line[1:]
	}
	if len(line) < 10 || !isDigit(line[0]) {
		return time.Time{}
	}
	if t, n := scanRFC3339(line); n > 0 {
		if n == len(line) || endsWord(line[n]) {
			return t
		}
		return time.Time{}
	}
	n := 10
	for n < len(line) && n < 32 && !endsWord(line[n]) {
		n++
	}
	t, _ := stampOf(line[:n])
	return t
}

func endsWord(c byte) bool { return isSpace(c) || c == ']' }
