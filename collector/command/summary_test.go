package command

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
)

// The newest attempt's summary stands for all of a pod, whatever the order in which they
// end.
func TestTheSummaryOfSeveralAttempts(t *testing.T) {
	type end struct {
		n           int
		final       bool
		undelivered int64
		note        string
	}
	const lost = "earlier attempts that were not reported to their end: "
	tests := map[string]struct {
		begun int
		ends  []end
		id    string
		final bool
		note  string
	}{
		"one that is final": {1, []end{{n: 0, final: true, note: "x"}}, "0", true, "x"},
		"one that is not":   {1, []end{{n: 0, undelivered: 3, note: "3 points were not delivered"}}, "0", false, "3 points were not delivered"},
		"all are final":     {3, []end{{n: 0, final: true}, {n: 2, final: true}, {n: 1, final: true}}, "2", true, ""},
		"the newest is not": {2, []end{{n: 0, final: true}, {n: 1, note: "y"}}, "1", false, "y"},
		"one is going on":   {2, []end{{n: 0, final: true}}, "0", false, ""},
		"an earlier one was given up later": {2, []end{{n: 1, final: true, note: "x"}, {n: 0, undelivered: 5, note: "z"}},
			"1", false, lost + "1; 5 of their points were not delivered; x"},
		"an earlier one was given up sooner": {2, []end{{n: 0, undelivered: 5}, {n: 1, final: true}},
			"1", false, lost + "1; 5 of their points were not delivered"},
		"several were given up": {4, []end{{n: 0, undelivered: 5}, {n: 3, final: true}, {n: 1, undelivered: 6}, {n: 2, final: true}},
			"3", false, lost + "2; 11 of their points were not delivered"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var attempts []*attempt
			for range tc.begun - len(tc.ends) {
				attempts = append(attempts, &attempt{client: &report.Client{}})
			}
			for _, e := range tc.ends {
				attempts = append(attempts, &attempt{n: e.n, stats: report.Stats{Undelivered: e.undelivered},
					summary: contract.Summary{Attempt: collector.Attempt{ID: string(rune('0' + e.n))}, Final: e.final, Note: e.note}})
			}
			got := summarize(attempts)
			if diff := cmp.Diff(contract.Summary{Attempt: collector.Attempt{ID: tc.id}, Final: tc.final, Note: tc.note}, got); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}
