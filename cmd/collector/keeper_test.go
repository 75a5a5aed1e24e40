package main

import (
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
)

// However many attempts end at once, few summaries are made of all of them, and
// the last one is that of all.
func TestSummariesAreFew(t *testing.T) {
	const many = 999
	tests := map[string]struct {
		begun int           // attempts
		pause time.Duration // between two ends
		want  int           // summaries, keepEvery after the last end
	}{
		"all end at once":             {many, 0, 2},
		"one goes on":                 {many + 1, 0, 2},
		"they end one by one":         {many, keepEvery / 100, 11},
		"one by one, and one goes on": {many + 1, keepEvery / 100, 11},
		"slowly":                      {many, keepEvery, many},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []report.Summary
				k := keeper{log: slog.New(slog.DiscardHandler), put: func(s report.Summary) error {
					got = append(got, s)
					return nil
				}}
				for range tc.begun {
					k.begin()
				}
				all := endings{begun: tc.begun}
				for i := range many {
					n := many - 1 - i // the newest first: all are folded again for each summary
					e := ending{n: n, undelivered: 1, summary: report.Summary{Attempt: collector.Attempt{ID: strconv.Itoa(n)}, Final: n%2 == 0}}
					all.add(e)
					if i > 0 {
						<-time.After(tc.pause)
					}
					if err := k.keep(e); err != nil {
						t.Fatal(err)
					}
				}
				if all.ended == all.begun {
					if diff := cmp.Diff(all.whole(), got[len(got)-1]); diff != "" {
						t.Errorf("at the last end (-want +got):\n%s", diff)
					}
				}
				<-time.After(keepEvery)
				synctest.Wait()
				if len(got) != tc.want {
					t.Errorf("%d summaries, want %d", len(got), tc.want)
				}
				if diff := cmp.Diff(all.whole(), got[len(got)-1]); diff != "" {
					t.Errorf("summary (-want +got):\n%s", diff)
				}
			})
		})
	}
}
