package trial

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// best is the better source of what was measured: the store when it has
// everything, else what the collector left behind, else what the store has.
func best(d data) []collector.Series {
	if !d.final && d.condensed {
		return d.summary
	}
	return d.series
}

// metricNames are the metrics of an objective, the objective first.
func metricNames(o *v1beta1.ObjectiveSpec) []string {
	if o == nil {
		return nil
	}
	return append([]string{o.ObjectiveMetricName}, o.AdditionalMetricNames...)
}

// hasObjective says whether the objective was reported, whatever its value.
func hasObjective(t *v1beta1.Trial, series []collector.Series) bool {
	return t.Spec.Objective != nil && collector.Observe(series, t.Spec.Objective.ObjectiveMetricName).Points > 0
}

// observation condenses series, the objective first. Metrics that were never
// reported have the value "unavailable", as in Katib.
func observation(o *v1beta1.ObjectiveSpec, series []collector.Series) *v1beta1.Observation {
	out := &v1beta1.Observation{}
	for _, name := range metricNames(o) {
		m := collector.Observe(series, name)
		out.Metrics = append(out.Metrics, v1beta1.Metric{
			Name: name, Min: m.Min.Text, Max: m.Max.Text, Latest: m.Latest.Text,
		})
	}
	return out
}

func sameObservation(a, b *v1beta1.Observation) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// reported are the names of all metrics in series, sorted.
func reported(series []collector.Series) []string {
	var names []string
	for _, s := range series {
		names = append(names, s.Metric)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
