package trial

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// best is the better source of what was measured: the store when it has
// everything, else what the collector left behind, else what the store has. Empty
// when the source has nothing.
func best(o *v1beta1.ObjectiveSpec, d data) []collector.Observation {
	if d.final || !d.condensed {
		return d.stored
	}
	if len(d.summary) == 0 {
		return nil
	}
	var left []collector.Observation
	for _, name := range metricNames(o) {
		left = append(left, collector.Observe(d.summary, name))
	}
	return left
}

// metricNames are the metrics of an objective, the objective first.
func metricNames(o *v1beta1.ObjectiveSpec) []string {
	if o == nil {
		return nil
	}
	return append([]string{o.ObjectiveMetricName}, o.AdditionalMetricNames...)
}

// hasObjective says whether the objective was reported, whatever its value.
func hasObjective(t *v1beta1.Trial, observed []collector.Observation) bool {
	return t.Spec.Objective != nil && slices.ContainsFunc(observed, func(m collector.Observation) bool {
		return m.Metric == t.Spec.Objective.ObjectiveMetricName && m.Points > 0
	})
}

// observation is what the status shows. Metrics that were never reported have the
// value "unavailable", as in Katib.
func observation(observed []collector.Observation) *v1beta1.Observation {
	out := &v1beta1.Observation{}
	for _, m := range observed {
		out.Metrics = append(out.Metrics, v1beta1.Metric{
			Name: m.Metric, Min: m.Min.Text, Max: m.Max.Text, Latest: m.Latest.Text,
		})
	}
	return out
}

func sameObservation(a, b *v1beta1.Observation) bool {
	return equality.Semantic.DeepEqual(a, b)
}

// reported are the names of the stored metrics and of those in summaries, sorted.
func reported(stored []string, summary []collector.Series) []string {
	names := slices.Clone(stored)
	for _, s := range summary {
		names = append(names, s.Metric)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
