package trial

import (
	"fmt"
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
		got, err := c.Reporting.collector(t.Context(), tr)
		if err != nil || got.Rate != want {
			t.Errorf("%s: rate %d, %v, want %d", strategy, got.Rate, err, want)
		}
	}
}

func TestTheRateOfATrialsAnnotationTakesTheManagersPlace(t *testing.T) {
	tests := map[string]struct {
		annotation string
		manager    int64
		strategy   v1beta1.MetricStrategyType
		want       int64
		wantErr    string
	}{
		"no annotation":                         {"", 50, "min", 50, ""},
		"a number":                              {"10", 50, "min", 10, ""},
		"a number where the manager has no cap": {"10", -1, "min", 10, ""},
		"no cap":                                {"off", 50, "min", -1, ""},
		"a number, and a strategy that needs all":      {"10", 50, "mean-last-5", -1, ""},
		"not a number, which must not end every trial": {"fast", 50, "min", 50, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Controller{}
			c.Reporting.Rate, c.Reporting.Token = tc.manager, func(collector.TrialID) (string, error) { return "t", nil }
			tr := aTrial(byStrategies(tc.strategy, "max"))
			tr.Spec.MetricsCollector.Collector = &v1beta1.CollectorSpec{Kind: v1beta1.StdOutCollector}
			if tc.annotation != "" {
				tr.Annotations = map[string]string{v1beta1.AnnotationCollectorRate: tc.annotation}
			}
			got, err := c.Reporting.collector(t.Context(), tr)
			if text := fmt.Sprint(err); got.Rate != tc.want || (err != nil) != (tc.wantErr != "") || err != nil && text != tc.wantErr {
				t.Errorf("rate %d, error %v, want %d and %q", got.Rate, err, tc.want, tc.wantErr)
			}
		})
	}
}
