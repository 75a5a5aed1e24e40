package events

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNotesAreCutAtAWord(t *testing.T) {
	got := clip(strings.Repeat("word ", 300))
	if len(got) > 1024 || !strings.HasSuffix(got, " word…") {
		t.Errorf("%d bytes that end with %q", len(got), got[len(got)-20:])
	}
	if got := clip(strings.Repeat("ä", 600)); len(got) > 1024 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
	}
}
