package events_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An event has the reason of a condition (a constant of the API, or that of a condition
// at hand), or one that the docs list.
func TestEventsHaveTheReasonsOfConditions(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	calls := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isNewEvent(call.Fun) {
				return true
			}
			calls++
			switch reason := call.Args[0].(type) {
			case *ast.BasicLit:
				text, err := strconv.Unquote(reason.Value)
				if err != nil {
					t.Fatal(err)
				}
				named = append(named, text)
			case *ast.SelectorExpr:
				if !strings.HasPrefix(reason.Sel.Name, "Reason") {
					t.Errorf("%s: an event has the reason %s, which is none of a condition", file, reason.Sel.Name)
				}
			default:
				t.Errorf("%s: the reason of an event is computed", file)
			}
			return true
		})
	}
	if calls < 10 {
		t.Errorf("%d events were found", calls)
	}
	slices.Sort(named)
	if diff := cmp.Diff(listed(t), slices.Compact(named)); diff != "" {
		t.Errorf("reasons that are of no condition (-docs/observability.md +code):\n%s", diff)
	}
}

func isNewEvent(f ast.Expr) bool {
	s, ok := f.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "events" && (s.Sel.Name == "Normal" || s.Sel.Name == "Warning")
}

func listed(t *testing.T) (reasons []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Events and conditions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| `") {
			for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(first, -1) {
				reasons = append(reasons, m[1])
			}
		}
	}
	slices.Sort(reasons)
	return reasons
}
