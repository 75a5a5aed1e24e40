package report

import (
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/bench/suggest/play"
)

func noisy(task, method string, seed uint64, path play.Path, visited ...[2]float64) play.Record {
	r := trained(task, method, seed, path...)
	r.Visited = visited
	return r
}

// In points the first of these tasks is from 4 to 0, and the second from 40 to 0.
func TestNoiseIsMeasuredByWhatIsRecommended(t *testing.T) {
	records := []play.Record{
		noisy("hpobench-car", "auto", 0, play.Path{{1, 4}, {9, 2}}, [2]float64{1, 4}, [2]float64{9, 2}, [2]float64{12, 0}),
		noisy("hpobench-car", "auto+repeats", 0, play.Path{{1, 4}, {14, 1}}, [2]float64{1, 4}, [2]float64{14, 1}),
		noisy("hpobench-kc1", "auto", 0, play.Path{{1, 40}, {30, 20}}, [2]float64{1, 40}, [2]float64{40, 0}),
		noisy("hpobench-kc1", "auto+repeats", 0, play.Path{{1, 40}, {44, 20}}, [2]float64{1, 40}),
		noisy("hpobench-kc1", "auto", 1, play.Path{{1, 0}}, [2]float64{1, 0}),     // not played with repeats
		noisy("hpobench-segment", "auto", 0, play.Path{{1, 3}}, [2]float64{1, 3}), // nothing was found
		noisy("hpobench-segment", "auto+repeats", 0, play.Path{{1, 3}}, [2]float64{1, 3}),
	}
	var out strings.Builder
	if err := PrintReal(&out, records); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"95 % interval", "| trials | best value | best tried | recommended | gain | share |",
		"| 15 | 25.0 | 50.0 | 37.5 | +12.5 ",
		"| 50 | 50.0 | 100.0 | 62.5 | +12.5 (-146.3 to +171.3) | 25 % |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
