package report

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/collector"
)

// Attempts that each measure other metrics do not make the order grow.
func TestTheOrderOfAHistoryHasNoMetricThatWasDropped(t *testing.T) {
	var all History
	for attempt := range 3 {
		tally := newTally([]string{"objective", "never"})
		for i := range maxMetrics {
			tally.add(collector.Point{Metric: fmt.Sprintf("m%d-%d", attempt, i), Step: 1})
		}
		all = all.Then(tally.history())
	}
	if len(all.metrics) != maxMetrics || len(all.order) != maxMetrics+2 {
		t.Errorf("%d metrics, %d names in order, want %d and the 2 that were asked for more", len(all.metrics), len(all.order), maxMetrics)
	}
	if !slices.Equal(all.order[:2], []string{"objective", "never"}) {
		t.Errorf("order begins %q", all.order[:2])
	}
}
