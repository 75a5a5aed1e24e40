package algorithm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/suggest/algorithm"
	"github.com/vernier-ml/vernier/suggest/propose"
)

const docsFolder = "../../docs/algorithms"

// TestEachAlgorithmHasAPage holds that the index links to a page for each
// registration, and that each page's table of settings is the registration's.
func TestEachAlgorithmHasAPage(t *testing.T) {
	index := readPage(t, "README.md")
	pages := map[string]bool{"README.md": true}
	for _, r := range algorithm.All() {
		file := r.Name + ".md"
		pages[file] = true
		if link := fmt.Sprintf("[%s](%s)", r.Name, file); !strings.Contains(index, link) {
			t.Errorf("README.md has no link %s", link)
		}
		if row := rowOf(index, r.Name); strings.Contains(row, "first counts") != r.FirstObjective {
			t.Errorf("README.md, of several objectives: %s; the registration says that the first decides: %v", row, r.FirstObjective)
		}
		page := readPage(t, file)
		if !strings.HasPrefix(page, "# "+r.Name+"\n") {
			t.Errorf("%s does not begin with the algorithm's name", file)
		}
		want := settingsTable(r.Settings)
		if diff := cmp.Diff(want, tableIn(page, "## Settings")); diff != "" {
			t.Errorf("%s, settings (-registered +documented):\n%s\nThe table must be:\n\n%s", file, diff, want)
		}
	}
	files, err := filepath.Glob(docsFolder + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !pages[filepath.Base(file)] {
			t.Errorf("%s is the page of no algorithm; remove it", filepath.Base(file))
		}
	}
}

// rowOf is the line of an algorithm in the index.
func rowOf(index, name string) string {
	for line := range strings.Lines(index) {
		if strings.HasPrefix(line, "| ["+name+"]") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func readPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docsFolder, file))
	if err != nil {
		t.Errorf("no page: %v", err)
	}
	return string(text)
}

func settingsTable(settings []propose.Setting) string {
	lines := []string{"| setting | default | what it does, and what it may be |", "|---|---|---|"}
	for _, s := range settings {
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", s.Name, s.Default, s.Help))
	}
	return strings.Join(lines, "\n")
}

// tableIn gives the lines of tables in the section of a page under the heading.
func tableIn(page, heading string) string {
	_, section, _ := strings.Cut(page, "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var lines []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}
