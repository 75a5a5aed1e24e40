package peer

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
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
			continue
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

func TestWhatCannotBeInstalledIsSaidAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := Install(filepath.Join(file, "venvs"), "optuna")
		if err == nil || !strings.Contains(err.Error(), "for optuna") {
			t.Errorf("below a file: %v", err)
		}
	}
}

// TestGoptunaPlays the spaces of numbers, of words and with conditions.
func TestGoptunaPlays(t *testing.T) {
	for name, problems := range map[string][]string{
		"goptuna-tpe": {"branin-2", "tree-12", "ordinal-5", "network-7", "stepped-rosenbrock-4"}, "goptuna-cmaes": {"branin-2", "stepped-rosenbrock-4", "crashing-branin-2"},
	} {
		p, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		found, err := problem.Find(nil, problems)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range found {
			opener, err := p.Open("", "", false)
			if err != nil {
				t.Fatal(err)
			}
			played, err := play.Play(t.Context(), opener, play.Run{Problem: q, Regime: play.Regimes()[0], Budget: 60, Evaluate: play.Evaluator(q, 0)})
			if err != nil || len(played.Spent) != 60 || !(played.Path.After(60) < problem.RandomMedian(q)) {
				t.Errorf("%s on %s: %d suggestions to %v, error %v", name, q.Name, len(played.Spent), played.Path.After(60), err)
			}
		}
	}
	nothing := goptunaOpener{sampler: "goptuna-nothing"}
	if _, err := nothing.Open(t.Context(), play.Game{}); err == nil {
		t.Error("a player that does not exist was opened")
	}
}
