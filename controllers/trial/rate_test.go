package trial

import (
	"testing"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

func TestCurvesThatStrategiesNeedWholeAreNotThinned(t *testing.T) {
	c := &Controller{}
	c.Reporting.Token = func(collector.TrialID) (string, error) { return "t", nil }
	for strategy, want := range map[v1beta1.MetricStrategyType]int64{"min": 0, "latest": 0, "mean-last-5": -1, "best-at-step": -1} {
		tr := aTrial(byStrategies(strategy, "max"))
		tr.Spec.MetricsCollector.Collector = &v1beta1.CollectorSpec{Kind: v1beta1.StdOutCollector}
		got, err := c.collector(tr)
		if err != nil || got.Rate != want {
			t.Errorf("%s: rate %d, %v, want %d", strategy, got.Rate, err, want)
		}
	}
}
