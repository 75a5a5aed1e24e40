package peer

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEachPeerHasPinnedVersions, so that a run can be repeated.
func TestEachPeerHasPinnedVersions(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w./\[\]-]+==\d[\w.]*$`)
	for _, p := range All() {
		list := requirements(p.Environment)
		if len(list) == 0 {
			t.Errorf("%s: its environment %q has no requirements", p.Name, p.Environment)
		}
		for _, r := range list {
			if !pinned.MatchString(r) {
				t.Errorf("%s needs %q, which is no version", p.Name, r)
			}
		}
	}
}

// TestEachPeerHasAnAdapter by the name that peer.py looks for.
func TestEachPeerHasAnAdapter(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		if seen[p.Name] {
			t.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name] = true
		file := "with_" + family(p.Name) + ".py"
		if p.Environment == Goptuna {
			file = filepath.Join(Goptuna, "main.go")
		}
		if _, err := os.Stat(filepath.Join("..", "peers", file)); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func family(name string) string {
	family, _, _ := strings.Cut(name, "-")
	return family
}

func TestWhatCannotBeBuiltIsSaidOnce(t *testing.T) {
	for range 2 {
		_, err := Install(t.TempDir(), t.TempDir(), Goptuna)
		if err == nil || !strings.Contains(err.Error(), "cannot build goptuna") {
			t.Errorf("without its source: %v", err)
		}
	}
}
