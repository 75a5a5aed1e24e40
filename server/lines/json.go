package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// decode reads one JSON value. Numbers keep their literal text, as json.Number.
// The tokens NaN, Infinity and -Infinity, which Python writes though JSON has
// none of them, become strings.
func decode(data []byte) (any, error) {
	text, ends := quoteTokens(data)
	at := func(offset int64) string {
		quoted, _ := slices.BinarySearch(ends, offset) // tokens before it, with two quotes each
		return position(data, offset-2*int64(quoted))
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("%w at %s", err, at(syntax.Offset))
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is nothing")
		}
		return nil, err
	}
	end := decoder.InputOffset()
	if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
		return nil, fmt.Errorf("there is more after the value, at %s", at(int64(len(text)-len(rest))+1))
	}
	return v, nil
}

// position says in words where the byte with this number, counted from 1, is.
func position(data []byte, offset int64) string {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	if line == 1 {
		return "byte " + strconv.Itoa(column)
	}
	return fmt.Sprintf("line %d, byte %d", line, column)
}

// stringOrToken finds strings, and the tokens that are no JSON and mean a number.
var stringOrToken = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"?|-?Infinity|NaN`)

// quoteTokens puts the tokens between quotes where they are not in a string. ends
// are where these are over.
func quoteTokens(data []byte) (out []byte, ends []int64) {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data, nil
	}
	last := 0
	for _, at := range stringOrToken.FindAllIndex(data, -1) {
		if data[at[0]] == '"' {
			continue
		}
		out = append(append(out, data[last:at[0]]...), '"')
		out = append(append(out, data[at[0]:at[1]]...), '"')
		ends = append(ends, int64(len(out)))
		last = at[1]
	}
	return append(out, data[last:]...), ends
}

// fields are the fields of an object, each of which is taken once. What is
// still there at the end is unknown.
type fields struct {
	where string // path to the object, for errors
	left  map[string]any
	known []string
	errs  SpaceFileError
}

func newFields(where string, v any) (*fields, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is %s; it must be an object", where, describe(v))
	}
	return &fields{where: where, left: maps.Clone(m)}, nil
}

func (f *fields) fail(format string, args ...any) { f.errs.add(fmt.Errorf(format, args...)) }

// path of a field, for errors.
func (f *fields) path(name string) string {
	if f.where == "" {
		return name
	}
	return f.where + "." + name
}

// take gives a field. A null counts as absent.
func (f *fields) take(name string) (v any, ok bool) {
	f.known = append(f.known, name)
	v = f.left[name]
	delete(f.left, name)
	return v, v != nil
}

// skip lets a field be there, whatever it is.
func (f *fields) skip(names ...string) {
	for _, name := range names {
		f.take(name)
	}
}

// end is the first fault, which is all that the answer to a request says.
func (f *fields) end() error {
	if all := f.faults(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// faults are all that is wrong with the fields, those that were not taken last.
func (f *fields) faults() SpaceFileError {
	where := f.where
	if where == "" {
		where = "the object"
	}
	all := slices.Clone(f.errs)
	for _, name := range sortedKeys(f.left) {
		all.add(fmt.Errorf("%s has %s, which is unknown; remove it or use one of %s",
			where, strconv.Quote(shorten(name)), strings.Join(f.known, ", ")))
	}
	return all
}

// read takes a field that must be what convert can read; given is false when there is
// none, and ok when there is none or it is right. What is wrong has been said.
func read[T any](f *fields, name, must string, convert func(any) (T, bool)) (value T, given, ok bool) {
	v, given := f.take(name)
	if !given {
		return value, false, true
	}
	if value, ok = convert(v); !ok {
		f.fail("%s is %s; it must be %s", f.path(name), describe(v), must)
	}
	return value, true, ok
}

// items reads a list of what convert can read; nil when there is none.
func items[T any](f *fields, name, must string, convert func(any) (T, bool)) []T {
	all, given, ok := read(f, name, "a list", as[[]any])
	if !given || !ok {
		return nil
	}
	out := make([]T, len(all))
	for i, v := range all {
		if out[i], ok = convert(v); !ok {
			f.fail("%s[%d] is %s; it must be %s", f.path(name), i, describe(v), must)
		}
	}
	return out
}

func as[T any](v any) (T, bool) {
	t, ok := v.(T)
	return t, ok
}

const (
	aText   = "a string or a number"
	aNumber = `a number, null, "NaN", "Infinity" or "-Infinity"`
)

// text reads a string, or a number as its literal text.
func (f *fields) text(name string) string {
	text, _, _ := read(f, name, aText, textOf)
	return text
}

// texts reads a list of strings or numbers.
func (f *fields) texts(name string) []string { return items(f, name, aText, textOf) }

// word reads a string; ok is false when it is none.
func (f *fields) word(name string) (text string, ok bool) {
	text, _, ok = read(f, name, "a string", as[string])
	return text, ok
}

// list reads a list; nil when there is none.
func (f *fields) list(name string) []any {
	all, _, _ := read(f, name, "a list", as[[]any])
	return all
}

// whole reads a whole number from 0 to maxNumber; given is false when there is
// none.
func (f *fields) whole(name string) (n int, given bool) {
	n, given, _ = read(f, name, fmt.Sprintf("a whole number from 0 to %d", maxNumber), func(v any) (int, bool) {
		whole, ok := wholeOf(v)
		return int(whole), ok && whole >= 0 && whole <= maxNumber
	})
	return n, given
}

// finite reads a number that is finite; nil when there is none.
func (f *fields) finite(name string) *float64 {
	x, given, ok := read(f, name, "a finite number", func(v any) (float64, bool) {
		x, ok := numberOf(v)
		return x, ok && isFinite(x)
	})
	if !given || !ok {
		return nil
	}
	return &x
}

// numbers reads a list of numbers, any of which may be NaN or infinite; nil when
// there is none.
func (f *fields) numbers(name string) []float64 { return items(f, name, aNumber, numberOf) }

func textOf(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// numberOf reads a measured number. One too large for a double is infinite, as
// in Python; null is NaN.
func numberOf(v any) (x float64, ok bool) {
	switch v := v.(type) {
	case nil:
		return math.NaN(), true
	case json.Number:
		x, _ = strconv.ParseFloat(v.String(), 64)
		return x, true
	case string:
		switch v {
		case "NaN":
			return math.NaN(), true
		case "Infinity":
			return math.Inf(1), true
		case "-Infinity":
			return math.Inf(-1), true
		}
	}
	return 0, false
}

// wholeOf reads a whole number that a double holds exactly; 3.0 is one, too.
func wholeOf(v any) (n int64, ok bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	x, err := number.Float64()
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	return int64(x), true
}

// describe shows a value in an error, shortened.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "missing or null"
	case bool:
		return strconv.FormatBool(v)
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case string:
		return strconv.Quote(shorten(v))
	case json.Number:
		return shorten(v.String())
	}
	return fmt.Sprint(v)
}

// shorten keeps long text out of errors.
func shorten(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
