package report

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

// record of a game on Branin's function that ends at a loss.
func record(task, method, version string, seed uint64, loss float64) play.Record {
	return play.NewRecord(play.Key{
		Suite: "s1", Problem: task, Regime: play.Sequential, Method: method, Version: version, Seed: seed, Budget: 40, Draw: problem.Draw,
	}, play.Played{Path: play.Path{{1, loss + 1}, {20, loss}}, Spent: []play.Cost{{CPU: 2e6, Wall: 3e6}}}, nil)
}

const optimum = 0.39788735772973816

func TestScores(t *testing.T) {
	found, err := problem.Find([]string{"s1"}, []string{"branin-2"})
	if err != nil {
		t.Fatal(err)
	}
	clip := problem.RandomMedian(found[0].Instance(0))
	b := newBook([]play.Record{
		record("branin-2", "exact", "v1", 0, optimum),
		record("branin-2", "half", "v1", 0, (optimum+clip)/2),
		record("branin-2", "far", "v1", 0, clip+100*(clip-optimum)),
		play.NewRecord(play.Key{Suite: "s1", Problem: "branin-2", Regime: play.Sequential, Method: "nothing", Budget: 40, Draw: problem.Draw}, play.Played{}, nil),
	})
	want := map[string]struct {
		score   float64
		success bool
	}{"exact": {100, true}, "half": {50, false}, "far": {0, false}, "nothing": {0, false}}
	for _, g := range b.games[task{"branin-2", play.Sequential, 40}] {
		w := want[g.Method]
		if math.Abs(g.score-w.score) > 1e-9 || g.success != w.success {
			t.Errorf("%s: score %v, success %v, want %+v", g.Method, g.score, g.success, w)
		}
		// Of a hundred looks, 51 see it at the optimum, 47 at a distance of 1, and
		// two come before the first evaluation.
		if auc := 51 + 47*(1-1/(clip-optimum)); g.Method == "exact" && math.Abs(g.auc-auc) > 1e-9 {
			t.Errorf("the mean score over time is %v, want %v", g.auc, auc)
		}
	}
}

// games of two methods on three families: ours is better by the same amount with
// each seed, worse on the last family.
func duel() []play.Record {
	var out []play.Record
	for seed := range uint64(12) {
		shift := float64(seed) / 100
		out = append(out,
			record("branin-2", "ours", "v1", seed, optimum+0.001+shift), record("branin-2", "peer", "peer==1", seed, optimum+1+shift),
			record("ackley-2", "ours", "v1", seed, 0.01+shift), record("ackley-2", "peer", "peer==1", seed, 3+shift),
			record("levy-4", "ours", "v1", seed, 2+shift), record("levy-4", "peer", "peer==1", seed, 1+shift),
		)
	}
	return out
}

func TestCompare(t *testing.T) {
	b := newBook(duel())
	d := b.compare(b.tasks(Groups()[0]), "ours", "peer")
	if d.tasks != 3 || d.wins != 2 || d.lost != 1 || len(d.lostOn) != 1 || !strings.HasPrefix(d.lostOn[0], "levy-4") {
		t.Errorf("got %+v, want two tasks won and levy-4 lost", d)
	}
	if !(d.score.Low <= d.score.Mean && d.score.Mean <= d.score.High) || d.score.Low > 0 {
		t.Errorf("the interval is %+v; with one loss of three families it must reach below 0", d.score)
	}
	ranks, _ := b.ranks(b.tasks(Groups()[0]))
	if math.Abs(ranks["ours"]-4.0/3) > 1e-12 || math.Abs(ranks["peer"]-5.0/3) > 1e-12 {
		t.Errorf("the ranks are %v, want 4/3 and 5/3", ranks)
	}
}

func TestWriteKeepsTheRestOfThePage(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("before\n"+begin+"\nold\n"+end+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := record("branin-2", "absent", "absent==1", 0, 0)
	broken.Path, broken.Error = nil, "cannot install absent==1: no such|package"
	stale := record("branin-2", "ours", "v0", 0, 9)
	records := append([]play.Record{stale, broken}, duel()...)
	if err := Write(records, Options{Page: page, Folder: filepath.Join(dir, "plots")}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{
		"before\n", "\nafter\n", "](plots/continuous.svg)", "not run: cannot install absent==1: no such/package", "**ours**",
		"`ours` (the best of ours here, chosen afterwards, which flatters it) against each of them", "2 / 0 / 1", "Where `ours` lost", "levy-4 (sequential)", "3 tasks, 73 games",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "old") {
		t.Error("what was between the markers is still there")
	}
	svg, err := os.ReadFile(filepath.Join(dir, "plots", "continuous.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(svg), "<polyline"); n != 2 {
		t.Errorf("the plot has %d lines, want 2", n)
	}
	if csv, err := os.ReadFile(filepath.Join(dir, "plots", "suggest.csv")); err != nil || strings.Count(string(csv), "\n") != 8 {
		t.Errorf("the table of tasks: %v\n%s", err, csv)
	}
}
