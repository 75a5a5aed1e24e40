package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// missingError is what a source says of a metric that it did not find.
type missingError struct{ text string }

func (e *missingError) Error() string     { return e.text }
func (e *missingError) Missing() []string { return []string{"loss"} }

func TestNotesSayWhatIsMissingFirstAndNothingTwice(t *testing.T) {
	in := newIntake(Config{})
	for i := range 9 {
		in.trouble(fmt.Errorf("file:x: the line at byte %d: %q is not a JSON object", i*100, strings.Repeat("a", i)))
	}
	in.trouble(errors.New("another trouble"))
	for range 2 {
		in.trouble(fmt.Errorf("file: %w", &missingError{"loss was not found; there is acc"}))
	}
	const want = `file: loss was not found; there is acc; file:x: the line at byte 0: "" is not a JSON object (and 8 more of the kind); another trouble`
	if got := in.note(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for i := range 5 {
		in.trouble(errors.New("trouble of kind " + strings.Repeat("x", i)))
	}
	if got := in.note(); !strings.HasSuffix(got, "; and 4 more of other kinds") {
		t.Error(got)
	}
}

func TestShorten(t *testing.T) {
	tests := map[string]struct {
		text string
		want string
	}{
		"what fits is kept":            {"twenty bytes of text", "twenty bytes of text"},
		"what does not ends at a word": {"more than twenty bytes, as it were", "more than twenty…"},
		"a long word is cut":           {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa…"},
		"a comma does not end it":      {"twelve bytes, then something", "twelve bytes…"},
		"no character is torn":         {"ääääääääääääää", "ääääääää…"},
		"what is no UTF-8 is made so":  {"a\xffb", "a?b"},
		"nothing":                      {"", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := shorten(tc.text, 20)
			if got != tc.want || len(got) > 20 || !utf8.ValidString(got) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
