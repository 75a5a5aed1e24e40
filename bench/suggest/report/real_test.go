package report

import (
	"math"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

func trained(task, method string, seed uint64, path ...[2]float64) play.Record {
	suite := problem.Live
	if strings.HasPrefix(task, "hpo") {
		suite = problem.Tabular
	}
	return play.Record{Key: play.Key{Suite: suite, Problem: task, Method: method, Version: method + "==1", Seed: seed, Budget: 60}, Path: path}
}

func TestMethodsOnRealTasks(t *testing.T) {
	failed := trained("net-wine-nll", "b", 2)
	failed.Error = "it ended"
	var out strings.Builder
	err := PrintReal(&out, []play.Record{
		trained("net-wine-nll", "auto", 0, [2]float64{1, 0.5}, [2]float64{20, 0.2}), trained("net-wine-nll", "b", 0, [2]float64{2, 0.5}, [2]float64{40, 0.1}),
		trained("choice-wine-nll", "auto", 0, [2]float64{1, 0.5}), trained("choice-wine-nll", "b", 0, [2]float64{8, 0.5}),
		trained("net-wine-nll", "auto", 2, [2]float64{1, 0.5}), failed, // counts for neither
		trained("branin-2", "auto", 0, [2]float64{1, 0.5}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"`b` broke off in 1 games, which do not count for it: it ended",
		"#### Live trainings\n\n2 games of 2 families.",
		"| trials | auto | b |\n|---|---|---|\n| 15 | 1.50 | 1.50 |\n| 25 | 1.25 | 1.75 |\n| 50 | 1.75 | 1.25 |\n",
		// half as many trials, and an eighth: in the mean a quarter
		"| b | 15 | 2 | 50 % (50 to 50) | 0.25 (0.00 to 1670.66) | too few families to tell |",
		"| b | 25 | 2 | 75 % ",
		"| b | 50 | 2 | 25 % ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant in it\n%s", out.String(), want)
		}
	}
	if strings.Contains(out.String(), "All") || strings.Contains(out.String(), "| 100 |") {
		t.Errorf("got\n%s\nwant no section of all, and nothing after 100 trials", out.String())
	}
}

func TestAMethodIsComparedInAllGamesThatBothHavePlayed(t *testing.T) {
	var records []play.Record // of which no game was played by all
	for seed := range uint64(4) {
		for _, task := range []string{"net-wine-nll", "choice-wine-nll"} {
			records = append(records, trained(task, "auto", seed, [2]float64{1, 0.5}), trained(task, "b", seed, [2]float64{1, 0.6}))
			if seed == 0 {
				records = append(records, trained(task, "c", seed, [2]float64{1, 0.4}))
			}
			if seed == 3 {
				records = append(records, trained(task, "d", seed, [2]float64{1, 0.4}))
			}
		}
	}
	var out strings.Builder
	if err := PrintReal(&out, records); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"#### Live trainings", "| b | 50 | 8 | 100 % ", "| c | 50 | 2 | 0 % ", "| d | 50 | 2 | 0 % "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant in it\n%s", out.String(), want)
		}
	}
}

// The unit is the family: many games of one say no more than one of each.
func TestIntervalsOverFamilies(t *testing.T) {
	few := overFamilies(map[string][]float64{"a": {0}, "b": {1}, "c": {0.5}})
	many := overFamilies(map[string][]float64{"a": {0, 0, 0}, "b": {1, 1, 1}, "c": {0.25, 0.75}})
	if few != many {
		t.Errorf("%v with a game of each, %v with many of each", few, many)
	}
	// Student's quantile for two degrees of freedom is 4.303, the standard error 0.5/√3.
	if want := 0.5 + 4.303*0.5/math.Sqrt(3); few.mean != 0.5 || math.Abs(few.high-want) > 1e-3 || math.Abs(few.low-(1-want)) > 1e-3 {
		t.Errorf("%v, want 0.5 and up to %.3f", few, want)
	}
	for v, want := range map[interval]string{{0.6, 0.51, 0.7}: "ahead", {0.4, 0.3, 0.49}: "behind", {0.6, 0.4, 0.8}: "no difference shown"} {
		if got := v.verdict(10); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
		if got := v.verdict(9); got != "too few families to tell" {
			t.Errorf("%v with nine families is %q", v, got)
		}
	}
}
