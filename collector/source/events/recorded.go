package events

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector/parse"
)

const (
	// formatting is how far two numbers may be apart, relative to the greater, and
	// be the same number: one went through 32 bits, or was printed with six digits.
	formatting = 1e-5
	// maxExact is up to where a recorded whole number is what the program had,
	// also one that went through 32 bits.
	maxExact = 1 << 24
	// namedRecorded bounds the parameters that a note names, and maxRecordedShown
	// their values in it, in bytes.
	namedRecorded    = 3
	maxRecordedShown = 40
)

// recordedParameters compares the parameters that the program recorded with those
// that it was given.
type recordedParameters struct {
	given map[string]string
	same  map[string]bool
	other map[string]string // the first other value of a name
}

func newRecordedParameters(given map[string]string) *recordedParameters {
	return &recordedParameters{given: given, same: map[string]bool{}, other: map[string]string{}}
}

func (r *recordedParameters) add(p parse.Recorded) {
	given, asked := r.given[p.Name]
	switch {
	case !asked:
	case sameParameter(given, p):
		r.same[p.Name] = true
	case r.other[p.Name] == "":
		r.other[p.Name] = shown(p.Value)
	}
}

// differing returns what was recorded with another value than was given, and
// never with that one: a program may record several models, of which one is what
// was asked for. It is nil when there is nothing to say.
func (r *recordedParameters) differing() error {
	var said []string
	for _, name := range slices.Sorted(maps.Keys(r.other)) {
		if r.same[name] {
			continue
		}
		if len(said) == 0 {
			said = append(said, fmt.Sprintf("the program recorded %s=%s, the trial was given %s", name, r.other[name], shown(r.given[name])))
		} else {
			said = append(said, fmt.Sprintf("recorded %s=%s, given %s", name, r.other[name], shown(r.given[name])))
		}
	}
	if len(said) == 0 {
		return nil
	}
	if more := len(said) - namedRecorded; more > 0 {
		said = append(said[:namedRecorded], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%s: does it read its arguments?", strings.Join(said, "; "))
}

// shown is a value in a note.
func shown(value string) string {
	if value == "" {
		return `""`
	}
	if len(value) > maxRecordedShown {
		return strings.ToValidUTF8(value[:maxRecordedShown], "") + "…"
	}
	return value
}

// sameParameter reports whether a recorded value is the given one: numbers as
// numbers, true and false in any case of letters or as 1 and 0, else letter by
// letter.
func sameParameter(given string, p parse.Recorded) bool {
	if given == p.Value {
		return true
	}
	a, isNumber := number(given)
	b, alsoNumber := number(p.Value)
	switch {
	case isNumber && alsoNumber:
		return nearlySame(a, b, p.Kind == parse.RecordedNumber)
	case isNumber && p.Kind == parse.RecordedBool:
		return a == truth(p.Value)
	case alsoNumber:
		return b == truth(given)
	}
	return strings.EqualFold(given, p.Value) && !math.IsNaN(truth(given))
}

func number(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return v, err == nil
}

// truth is 1 for true and 0 for false, NaN for other words.
func truth(s string) float64 {
	switch {
	case strings.EqualFold(s, "true"):
		return 1
	case strings.EqualFold(s, "false"):
		return 0
	}
	return math.NaN()
}

// nearlySame compares numbers. exact says that whole numbers have all their
// digits.
func nearlySame(a, b float64, exact bool) bool {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return true
	}
	greater := max(math.Abs(a), math.Abs(b))
	if exact && greater <= maxExact && a == math.Trunc(a) && b == math.Trunc(b) {
		return false
	}
	return math.Abs(a-b) <= formatting*greater && !math.IsInf(greater, 0)
}
