package suggest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Setting is one setting of an algorithm or stopping rule, as the user writes
// it.
type Setting struct {
	Name, Value string
}

// Settings are the settings of one algorithm or stopping rule.
type Settings []Setting

// SettingError says what is wrong with one setting and what to do.
type SettingError struct {
	// Name of the setting.
	Name string
	// Problem, and what to do about it.
	Problem string
}

// Error names the setting.
func (e *SettingError) Error() string { return fmt.Sprintf("setting %q %s", e.Name, e.Problem) }

// Read starts reading. The reader keeps each error until Err.
func (s Settings) Read() *SettingsReader {
	r := &SettingsReader{values: make(map[string]string, len(s)), order: s}
	for _, setting := range s {
		if _, ok := r.values[setting.Name]; ok {
			r.Fail(setting.Name, "is given twice; remove one")
		}
		r.values[setting.Name] = setting.Value
	}
	return r
}

// SettingsReader reads settings by type. Each method knows its setting's name
// from then on; Err rejects the settings that no method asked for. After an
// error a method returns the default.
type SettingsReader struct {
	values map[string]string
	order  Settings
	known  []string
	errs   []error
}

// Range is the numbers that a setting may have: from Min to Max, ends included
// unless they are open.
type Range struct {
	Min, Max         float64
	OpenMin, OpenMax bool
}

// AtLeast is the range from min up, min included.
func AtLeast(min float64) Range { return Range{Min: min, Max: math.Inf(1)} }

// Between is the range from min to max, neither included.
func Between(min, max float64) Range {
	return Range{Min: min, Max: max, OpenMin: true, OpenMax: true}
}

func (r Range) contains(x float64) bool {
	return (x > r.Min || x == r.Min && !r.OpenMin) && (x < r.Max || x == r.Max && !r.OpenMax)
}

// String says the range in words that follow "must be".
func (r Range) String() string {
	var parts []string
	if !math.IsInf(r.Min, -1) {
		word := "at least "
		if r.OpenMin {
			word = "above "
		}
		parts = append(parts, word+formatFloat(r.Min))
	}
	if !math.IsInf(r.Max, 1) {
		word := "at most "
		if r.OpenMax {
			word = "below "
		}
		parts = append(parts, word+formatFloat(r.Max))
	}
	if len(parts) == 0 {
		return "finite"
	}
	return strings.Join(parts, " and ")
}

// Fail notes what is wrong with a setting, and what to do about it.
func (r *SettingsReader) Fail(name, format string, args ...any) {
	r.errs = append(r.errs, &SettingError{Name: name, Problem: fmt.Sprintf(format, args...)})
}

// Reject notes an error that is about no setting alone.
func (r *SettingsReader) Reject(err error) { r.errs = append(r.errs, err) }

func (r *SettingsReader) get(name string) (text string, ok bool) {
	r.known = append(r.known, name)
	text, ok = r.values[name]
	return text, ok
}

// Has says whether the setting is given.
func (r *SettingsReader) Has(name string) bool {
	_, ok := r.get(name)
	return ok
}

// Text reads a setting as it stands.
func (r *SettingsReader) Text(name, byDefault string) string {
	if text, ok := r.get(name); ok {
		return text
	}
	return byDefault
}

// Choice reads a setting that is one of a few words.
func (r *SettingsReader) Choice(name, byDefault string, choices ...string) string {
	text, ok := r.get(name)
	if !ok {
		return byDefault
	}
	if !slices.Contains(choices, text) {
		r.Fail(name, "is %q; use one of %s", text, strings.Join(choices, ", "))
		return byDefault
	}
	return text
}

// Int reads a whole number.
func (r *SettingsReader) Int(name string, byDefault int64, within Range) int64 {
	text, ok := r.get(name)
	if !ok {
		return byDefault
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !within.contains(float64(n)) {
		r.Fail(name, "is %q; it must be a whole number, %s", text, within)
		return byDefault
	}
	return n
}

// Float reads a finite number.
func (r *SettingsReader) Float(name string, byDefault float64, within Range) float64 {
	text, ok := r.get(name)
	if !ok {
		return byDefault
	}
	n, err := parseNumber(text)
	if err != nil {
		r.Fail(name, "is %q; it must be a number, %s", text, within)
		return byDefault
	}
	if !within.contains(n.value) {
		r.Fail(name, "is %s; it must be %s", text, within)
		return byDefault
	}
	return n.value
}

// Bool reads true or false, also as Python writes them.
func (r *SettingsReader) Bool(name string, byDefault bool) bool {
	text, ok := r.get(name)
	if !ok {
		return byDefault
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		r.Fail(name, "is %q; use true or false", text)
		return byDefault
	}
	return b
}

// Err tells all that was wrong so far, and rejects the settings that were not
// asked for. Call it last.
func (r *SettingsReader) Err() error {
	errs := slices.Clone(r.errs)
	known := slices.Compact(slices.Sorted(slices.Values(r.known)))
	for _, s := range r.order {
		if slices.Contains(known, s.Name) {
			continue
		}
		problem := "is unknown; remove it (there are no settings)"
		if len(known) > 0 {
			problem = "is unknown; remove it or use one of " + strings.Join(known, ", ")
		}
		errs = append(errs, &SettingError{Name: s.Name, Problem: problem})
	}
	return errors.Join(errs...)
}
