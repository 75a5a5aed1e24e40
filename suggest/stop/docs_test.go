package stop_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest"
	"github.com/vernier-ml/vernier/suggest/stop"
)

// TestEachRuleIsDocumented holds that docs/stopping.md has a section for each
// registration, whose table of settings is the registration's.
func TestEachRuleIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/stopping.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range stop.All() {
		_, section, found := strings.Cut(string(text), "\n## "+r.Name+"\n")
		if !found {
			t.Errorf("there is no section %s", r.Name)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		want := settingsTable(r.Settings)
		if diff := cmp.Diff(want, tableOf(section)); diff != "" {
			t.Errorf("%s, settings (-registered +documented):\n%s\nThe table must be:\n\n%s", r.Name, diff, want)
		}
	}
}

func settingsTable(settings []suggest.SettingHelp) string {
	lines := []string{"| setting | default | what it does, and what it may be |", "|---|---|---|"}
	for _, s := range settings {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("| `%s` | %s | %s |", s.Name, s.Default, strings.TrimSpace(s.Help))))
	}
	return strings.Join(lines, "\n")
}

// tableOf gives the lines of tables in a section.
func tableOf(section string) string {
	var lines []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}
