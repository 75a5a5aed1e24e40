package vernier_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inline = regexp.MustCompile("`[^`\n]+`")
)

// TestLinksOfThePagesLead holds that each relative link has a file, and each
// fragment a heading.
func TestLinksOfThePagesLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pages := pages(t)
	for name, text := range pages {
		for _, found := range link.FindAllStringSubmatch(prose(text), -1) {
			target := found[1]
			if strings.Contains(target, "://") {
				continue
			}
			file, fragment, _ := strings.Cut(target, "#")
			where := name
			if file != "" {
				where = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(where); err != nil {
				t.Errorf("%s: the link to %s leads nowhere: %v", name, target, err)
				continue
			}
			if fragment != "" && !slices.Contains(anchors(pages[where]), fragment) {
				t.Errorf("%s: %s has no heading for the link to #%s", name, where, fragment)
			}
		}
	}
}

// TestPagesNameWhatThereIs holds that the targets of make and the paths of the
// repository that the pages name exist.
func TestPagesNameWhatThereIs(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z0-9-]*)")
	file := regexp.MustCompile("(?:^|[ `(])((?:\\./)?(?:api|bench|cmd|collector|config|controllers|controlplane|docs|e2e|examples|local|server|suggest|tools|trainer)(?:/[a-zA-Z0-9_.-]+)+)")
	for name, text := range pages(t) {
		for _, found := range target.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(makefile), "\n"+found[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", name, found[1])
			}
		}
		for _, code := range append(inline.FindAllString(text, -1), fenced.FindAllString(text, -1)...) {
			for _, found := range file.FindAllStringSubmatch(code, -1) {
				if _, err := os.Stat(strings.TrimRight(found[1], ".")); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// TestPagesNameTestsThatThereAre holds that the tests which the pages name exist.
func TestPagesNameTestsThatThereAre(t *testing.T) {
	tests := map[string]bool{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllSubmatch(text, -1) {
			tests[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range pages(t) {
		for _, found := range regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]+)`").FindAllStringSubmatch(text, -1) {
			if !tests[found[1]] {
				t.Errorf("%s: there is no test %s", name, found[1])
			}
		}
	}
}

// TestTheMapHasEveryPackage holds that each package stands in the map of
// ARCHITECTURE.md: by its path, or by its name in the row of a folder that it
// is in; and that each folder of the map is there.
func TestTheMapHasEveryPackage(t *testing.T) {
	rows := mapRows(t)
	for _, p := range packages(t) {
		if !slices.ContainsFunc(rows, func(r mapRow) bool { return r.has(p) }) {
			t.Errorf("the map of ARCHITECTURE.md does not have the package %s", p)
		}
	}
	for _, r := range rows {
		for _, folder := range r.folders {
			if info, err := os.Stat(folder); err != nil || !info.IsDir() {
				t.Errorf("the map of ARCHITECTURE.md has %s, which is no folder", folder)
			}
		}
	}
}

type mapRow struct {
	folders []string
	names   []string // what else stands in backquotes
}

func (r mapRow) has(pkg string) bool {
	return slices.ContainsFunc(r.folders, func(folder string) bool {
		rest, under := strings.CutPrefix(pkg, folder+"/")
		return pkg == folder || under && slices.Contains(r.names, rest)
	})
}

func mapRows(t *testing.T) []mapRow {
	t.Helper()
	text := pages(t)["ARCHITECTURE.md"]
	_, text, found := strings.Cut(text, "## The map\n")
	text, _, ends := strings.Cut(text, "\n## ")
	if !found || !ends {
		t.Fatal("ARCHITECTURE.md has no section The map")
	}
	var rows []mapRow
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		row := mapRow{names: quoted(cells[2])}
		for _, folder := range quoted(cells[1]) {
			// `controllers/trial`, `webhook`: the second is beside the first.
			if len(row.folders) > 0 && !strings.Contains(folder, "/") {
				if beside := path.Join(path.Dir(row.folders[0]), folder); exists(beside) {
					folder = beside
				}
			}
			row.folders = append(row.folders, folder)
		}
		rows = append(rows, row)
	}
	return rows
}

// packages are the folders of the module's packages.
func packages(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags=e2e", "./...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	var found []string
	for name := range strings.FieldsSeq(string(out)) {
		if folder, under := strings.CutPrefix(name, module+"/"); under {
			found = append(found, folder)
		}
	}
	if len(found) == 0 {
		t.Fatal("go list found no packages")
	}
	return found
}

// pages are README.md and the other pages at the root and below docs, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("docs", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

// prose is a page without its code, in which brackets mean other things.
func prose(text string) string {
	return inline.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
}

// anchors are the fragments of a page's headings, as GitHub makes them.
func anchors(text string) []string {
	var found []string
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for line := range strings.Lines(fenced.ReplaceAllString(text, "")) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			heading = dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			found = append(found, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	return found
}

func quoted(text string) []string {
	var found []string
	for _, code := range inline.FindAllString(text, -1) {
		found = append(found, strings.Trim(code, "`"))
	}
	return found
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
