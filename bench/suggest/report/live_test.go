package report

import (
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
	"github.com/vernier-ml/vernier/bench/suggest/problem"
)

func TestMeanRanksOfTrainings(t *testing.T) {
	record := func(task, method string, seed uint64, path ...[2]float64) play.Record {
		return play.Record{Key: play.Key{Suite: problem.Live, Problem: task, Method: method, Seed: seed}, Path: path}
	}
	failed := record("net-wine-nll", "b", 2)
	failed.Error = "it ended"
	var out strings.Builder
	err := PrintLive(&out, []play.Record{
		record("net-wine-nll", "a", 0, [2]float64{1, 0.5}, [2]float64{20, 0.2}), record("net-wine-nll", "b", 0, [2]float64{1, 0.5}, [2]float64{40, 0.1}),
		record("choice-wine-nll", "a", 0, [2]float64{1, 0.5}), record("choice-wine-nll", "b", 0, [2]float64{2, 0.7}),
		record("net-wine-nll", "a", 2, [2]float64{1, 0.5}), failed, // counts for neither
		record("branin-2", "a", 0, [2]float64{1, 0.5}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"mean rank, live trainings, all: 2 games a b",
		"after 15 trials 1.25 ± 0.18 1.75 ± 0.18",
		"after 30 trials 1.00 ± 0.00 2.00 ± 0.00",
		"after 60 trials 1.50 ± 0.35 1.50 ± 0.35",
		"mean rank, live trainings, looked at: 1 games a b",
		"after 15 trials 1.00 ± 0.00 2.00 ± 0.00",
		"after 30 trials 1.00 ± 0.00 2.00 ± 0.00",
		"after 60 trials 1.00 ± 0.00 2.00 ± 0.00",
		"mean rank, live trainings, kept aside: 1 games a b",
		"after 15 trials 1.50 ± 0.00 1.50 ± 0.00",
		"after 30 trials 1.00 ± 0.00 2.00 ± 0.00",
		"after 60 trials 2.00 ± 0.00 1.00 ± 0.00",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
