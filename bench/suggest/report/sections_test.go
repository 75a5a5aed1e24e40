package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/stat"
	"github.com/vernier-ml/vernier/suggest/algorithm"
)

// contest has three methods on four tasks: auto before tpe before random, and a
// peer's method that is worse than random on one family.
func contest() []play.Record {
	var out []play.Record
	for seed := range uint64(8) {
		shift := float64(seed) / 100
		for _, name := range []string{"ackley-2", "levy-4", "rosenbrock-2"} {
			out = append(out,
				record(name, "auto", "v1", seed, 0.001+shift), record(name, "tpe", "v1", seed, 0.5+shift),
				record(name, "random", "v1", seed, 1+shift), record(name, "optuna-tpe", "optuna==5", seed, 0.7+shift))
		}
		out = append(out,
			record("branin-2", "auto", "v1", seed, optimum+0.01), record("branin-2", "tpe", "v1", seed, optimum+5),
			record("branin-2", "random", "v1", seed, optimum+1+shift), record("branin-2", "optuna-tpe", "optuna==5", seed, optimum+2))
	}
	return out
}

func TestAgainstRandomTellsWhereAMethodIsWorse(t *testing.T) {
	var p page
	newBook(contest()).againstRandom(&p)
	for _, want := range []string{
		"`auto`: shown to be better on 4 of 4 families", "`tpe`: shown to be better on 3 of 4 families",
		"shown to be worse: `tpe` on branin\n", "neither shown: none", "| branin | 1 | 8 | +",
	} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, p.String())
		}
	}
}

func TestAgainstRandomWantsSeeds(t *testing.T) {
	var few []play.Record
	for _, r := range contest() {
		if r.Seed < fewSeeds-1 {
			few = append(few, r)
		}
	}
	var p page
	newBook(few).againstRandom(&p)
	if p.Len() > 0 {
		t.Errorf("with %d seeds it says:\n%s", fewSeeds-1, p.String())
	}
}

func TestVerdictsWantFamiliesAndSeeds(t *testing.T) {
	ahead := stat.Interval{Mean: 2, Low: 1, High: 3}
	for want, d := range map[string]difference{
		"ahead":                    {families: 3, seeds: 5, score: ahead},
		"**behind**":               {families: 3, seeds: 5, score: stat.Interval{Mean: -2, Low: -3, High: -1}},
		"no difference shown":      {families: 3, seeds: 5, score: stat.Interval{Mean: 2, Low: -1, High: 5}},
		"too few seeds to tell":    {families: 3, seeds: 4, score: ahead},
		"too few families to tell": {families: 2, seeds: 30, score: ahead},
	} {
		if got := d.verdict(); got != want {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
}

func TestTasksThatNoPeerPlayedAreNotCompared(t *testing.T) {
	records := append(contest(), record("sphere-10", "auto", "v1", 0, 3))
	b := newBook(records)
	if got := len(b.tasks(Groups()[0])); got != 4 {
		t.Errorf("%d tasks, want 4", got)
	}
	alone := newBook([]play.Record{record("sphere-10", "auto", "v1", 0, 3)})
	if got := len(alone.tasks(Groups()[0])); got != 1 {
		t.Errorf("%d tasks where no other method plays, want 1", got)
	}
}

func TestEachAlgorithmsPageGetsItsRows(t *testing.T) {
	folder := t.TempDir()
	for _, r := range algorithm.All() {
		if err := os.WriteFile(filepath.Join(folder, r.Name+".md"), []byte("# "+r.Name+"\n"+begin+"\n"+end+"\nLimits\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := newBook(contest()).pages(folder, filepath.Join(folder, "rows.csv"), "Measured."); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"tpe":  "| Sequential, continuous | `tpe` | 4 | 8 | ",
		"auto": "| random | ",
		"pbt":  "cannot go on from a checkpoint",
		"enas": "It did not play in this run.",
	} {
		text, err := os.ReadFile(filepath.Join(folder, name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) || !strings.HasSuffix(string(text), end+"\nLimits\n") {
			t.Errorf("%s lacks %q:\n%s", name, want, text)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "tpe.md"), []byte("# tpe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newBook(contest()).pages(folder, filepath.Join(folder, "rows.csv"), ""); err == nil || !strings.Contains(err.Error(), "tpe.md") {
		t.Errorf("a page without markers: %v", err)
	}
}
