package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// missingError is what a source says of a metric that it did not find.
type missingError struct{ text string }

func (e *missingError) Error() string     { return e.text }
func (e *missingError) Missing() []string { return []string{"loss"} }

func TestNotesSayWhatIsMissingFirstAndNothingTwice(t *testing.T) {
	in := newBatcher(Config{})
	for i := range 9 {
		in.trouble(fmt.Errorf("file:x: the line at byte %d: %q is not a JSON object", i*100, strings.Repeat("a", i)))
	}
	in.trouble(errors.New("another trouble"))
	for range 2 {
		in.trouble(fmt.Errorf("file: %w", &missingError{"loss was not found; there is acc"}))
	}
	const want = `file: loss was not found; there is acc; file:x: the line at byte 0: "" is not a JSON object (and 8 more of the kind); another trouble`
	if got := in.notes.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for i := range 5 {
		in.trouble(errors.New("trouble of kind " + strings.Repeat("x", i)))
	}
	if got := in.notes.String(); !strings.HasSuffix(got, "; and 4 more of other kinds") {
		t.Error(got)
	}
}
