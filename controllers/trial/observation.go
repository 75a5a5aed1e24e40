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
	for _, ask := range asksOf(o) {
		left = append(left, fromSummary(d.summary, ask))
	}
	return left
}

// fromSummary condenses what a collector left behind, in which there is no curve:
// the latest value stands for a mean of the last ones, and what a metric was where
// the objective was best is not known.
func fromSummary(summary []collector.Series, ask collector.Ask) collector.Observation {
	o := collector.Observe(summary, ask.Metric)
	switch {
	case ask.Strategy.MeanLast() > 0:
		o.Chosen = o.Latest
	case ask.Strategy == collector.StrategyBestAtStep && ask.Metric == ask.Objective:
		best := o.Min
		if ask.Maximize {
			best = o.Max
		}
		if best.Finite() {
			o.Chosen = best
		}
	}
	return o
}

// asksOf are the metrics of an objective, the objective first, with the strategies
// that need more than the least, the greatest and the latest value.
func asksOf(o *v1beta1.ObjectiveSpec) []collector.Ask {
	var asks []collector.Ask
	for _, name := range metricNames(o) {
		ask := collector.Ask{Metric: name, Objective: o.ObjectiveMetricName, Maximize: o.Type == v1beta1.ObjectiveTypeMaximize}
		for _, s := range o.MetricStrategies {
			if strategy := collector.Strategy(s.Value); s.Name == name && strategy.WholeCurve() {
				ask.Strategy = strategy
			}
		}
		asks = append(asks, ask)
	}
	return asks
}

// metricNames are the metrics of an objective, the objective first.
func metricNames(o *v1beta1.ObjectiveSpec) []string {
	if o == nil {
		return nil
	}
	return append([]string{o.ObjectiveMetricName}, o.AdditionalMetricNames...)
}

// missing are the wanted metrics that were not reported, whatever their values:
// objectives, and the others, which constraints may bound.
func missing(t *v1beta1.Trial, observed []collector.Observation) (objectives, others []string) {
	required := requiredOf(t)
	for _, name := range append(slices.Clone(required), metricNames(t.Spec.Objective)...) {
		switch {
		case slices.ContainsFunc(observed, func(m collector.Observation) bool { return m.Metric == name && m.Points > 0 }),
			slices.Contains(objectives, name), slices.Contains(others, name):
		case slices.Contains(required, name):
			objectives = append(objectives, name)
		default:
			others = append(others, name)
		}
	}
	return objectives, others
}

// requiredOf are the objectives' metrics, the main one first; without an
// objective a name that nothing has.
func requiredOf(t *v1beta1.Trial) []string {
	if t.Spec.Objective == nil {
		return []string{""}
	}
	names := []string{t.Spec.Objective.ObjectiveMetricName}
	for _, o := range t.Spec.Objectives {
		names = append(names, o.ObjectiveMetricName)
	}
	return names
}

// hasObjectives says whether each objective was reported, whatever its value.
func hasObjectives(t *v1beta1.Trial, observed []collector.Observation) bool {
	lacking, _ := missing(t, observed)
	return len(lacking) == 0
}

// observation is what the status shows. Metrics that were never reported have the
// value "unavailable", as in Katib.
func observation(o *v1beta1.ObjectiveSpec, observed []collector.Observation) *v1beta1.Observation {
	chosen := map[string]bool{}
	for _, ask := range asksOf(o) {
		chosen[ask.Metric] = ask.Strategy != ""
	}
	out := &v1beta1.Observation{}
	for _, m := range observed {
		metric := v1beta1.Metric{Name: m.Metric, Min: m.Min.Text, Max: m.Max.Text, Latest: m.Latest.Text}
		if chosen[m.Metric] {
			metric.Value = m.Chosen.Text
		}
		out.Metrics = append(out.Metrics, metric)
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
