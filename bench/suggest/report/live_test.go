package report

import (
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

func trained(task, method string, seed uint64, path ...[2]float64) play.Record {
	return play.Record{Key: play.Key{Suite: problem.Live, Problem: task, Method: method, Version: method + "==1", Seed: seed, Budget: 60}, Path: path}
}

func TestMeanRanksOfTrainings(t *testing.T) {
	failed := trained("net-wine-nll", "b", 2)
	failed.Error = "it ended"
	var out strings.Builder
	err := PrintLive(&out, []play.Record{
		trained("net-wine-nll", "a", 0, [2]float64{1, 0.5}, [2]float64{20, 0.2}), trained("net-wine-nll", "b", 0, [2]float64{1, 0.5}, [2]float64{40, 0.1}),
		trained("choice-wine-nll", "a", 0, [2]float64{1, 0.5}), trained("choice-wine-nll", "b", 0, [2]float64{2, 0.7}),
		trained("net-wine-nll", "a", 2, [2]float64{1, 0.5}), failed, // counts for neither
		trained("branin-2", "a", 0, [2]float64{1, 0.5}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"b broke off in 1 games, which count for no method: it ended",
		"mean rank, live trainings, all: 2 games a b",
		"after 15 trials 1.25 ± 0.25 1.75 ± 0.25",
		"after 30 trials 1.00 ± 0.00 2.00 ± 0.00",
		"after 60 trials 1.50 ± 0.50 1.50 ± 0.50",
		"mean rank, live trainings, looked at: 1 games a b",
		"after 15 trials 1.00 ± NaN 2.00 ± NaN",
		"after 30 trials 1.00 ± NaN 2.00 ± NaN",
		"after 60 trials 1.00 ± NaN 2.00 ± NaN",
		"mean rank, live trainings, kept aside: 1 games a b",
		"after 15 trials 1.50 ± NaN 1.50 ± NaN",
		"after 30 trials 1.00 ± NaN 2.00 ± NaN",
		"after 60 trials 2.00 ± NaN 1.00 ± NaN",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRanksOfTrainingsEndWithTheShortestGame(t *testing.T) {
	short := trained("net-wine-nll", "a", 1, [2]float64{1, 0.5})
	short.Budget = 40
	var out strings.Builder
	if err := PrintLive(&out, []play.Record{trained("net-wine-nll", "a", 0, [2]float64{1, 0.5}), short}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "after 30") || strings.Contains(got, "after 60") {
		t.Errorf("got\n%s\nwant 30 trials and no more", got)
	}
}
