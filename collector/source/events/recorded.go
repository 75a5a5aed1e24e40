package events

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector/parse"
)

// maxNamedRecorded bounds the parameters that a note names, and maxRecordedShown
// their values in it, in bytes.
const (
	maxNamedRecorded = 3
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
	case sameParameter(given, p.Value):
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
	form := "the program recorded %s=%s, the trial was given %s"
	for _, name := range slices.Sorted(maps.Keys(r.other)) {
		if !r.same[name] {
			said = append(said, fmt.Sprintf(form, name, r.other[name], shown(r.given[name])))
			form = "recorded %s=%s, given %s"
		}
	}
	if len(said) == 0 {
		return nil
	}
	if more := len(said) - maxNamedRecorded; more > 0 {
		said = append(said[:maxNamedRecorded], fmt.Sprintf("and %d more", more))
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
// numbers, also if one went through 32 bits or was printed with six digits, true and
// false as 1 and 0, else letter by letter.
func sameParameter(given, recorded string) bool {
	a, isNumber := numberIn(given)
	b, alsoNumber := numberIn(recorded)
	if !isNumber || !alsoNumber {
		return given == recorded
	}
	short, _ := numberIn(strconv.FormatFloat(a, 'g', 6, 64))
	return a == b || a != a && b != b || b == float64(float32(a)) || b == short
}

func numberIn(s string) (float64, bool) {
	switch strings.ToLower(s) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return v, err == nil
}
