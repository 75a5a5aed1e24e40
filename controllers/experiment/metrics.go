package experiment

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/study"
)

// Metrics are the experiment controller's metrics. No label names an
// experiment: their number stays bounded.
type Metrics struct {
	completed   *prometheus.CounterVec
	suggestions *prometheus.CounterVec
	suggestTime *prometheus.HistogramVec
	fallbacks   *prometheus.CounterVec
	stopped     *prometheus.CounterVec
}

// NewMetrics registers the metrics with reg. The gauge of experiments is read
// from cache at each scrape, so it cannot drift.
func NewMetrics(reg prometheus.Registerer, cache client.Reader) (*Metrics, error) {
	m := &Metrics{
		completed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_experiments_completed_total",
			Help: "Experiments that ended, by result (succeeded, failed).",
		}, []string{"namespace", "result", "algorithm"}),
		suggestions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_suggestions_total",
			Help: "Calls of algorithms, by outcome (ok, empty, error).",
		}, []string{"algorithm", "outcome"}),
		suggestTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vernier_suggest_duration_seconds",
			Help:    "Time that algorithms took to propose.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"algorithm", "phase"}),
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_suggestion_fallbacks_total",
			Help: "Proposals for which an algorithm could not do its normal work, by what it did or why.",
		}, []string{"algorithm", "fallback"}),
		stopped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trials_stopped_early_total",
			Help: "Trials that an early stopping rule gave up.",
		}, []string{"rule"}),
	}
	gauge := &experimentGauge{cache: cache, desc: prometheus.NewDesc(
		"vernier_experiments", "Experiments that exist, by phase (the last condition).", []string{"namespace", "phase"}, nil)}
	for _, c := range []prometheus.Collector{m.completed, m.suggestions, m.suggestTime, m.fallbacks, m.stopped, gauge} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) suggested(algorithm string, n int, err error, took time.Duration) {
	outcome := "ok"
	switch {
	case err != nil:
		outcome = "error"
	case n == 0:
		outcome = "empty"
	}
	m.suggestions.WithLabelValues(algorithm, outcome).Inc()
	m.suggestTime.WithLabelValues(algorithm, "total").Observe(took.Seconds())
}

// fellBack counts a proposal that was not made in the algorithm's normal way.
func (m *Metrics) fellBack(algorithm, fallback string) {
	m.fallbacks.WithLabelValues(algorithm, fallback).Inc()
}

// stoppedEarly counts a trial that a rule gave up.
func (m *Metrics) stoppedEarly(rule string) { m.stopped.WithLabelValues(rule).Inc() }

// finished counts an experiment that ended with the write from before to after.
func (m *Metrics) finished(exp *v1beta1.Experiment, before, after *v1beta1.ExperimentStatus) {
	if over(before) || !over(after) {
		return
	}
	kind, algorithm := "succeeded", ""
	if current(after).Type == v1beta1.ExperimentFailed {
		kind = "failed"
	}
	if exp.Spec.Algorithm != nil {
		algorithm = known(exp.Spec.Algorithm.AlgorithmName)
	}
	m.completed.WithLabelValues(exp.Namespace, kind, algorithm).Inc()
}

func over(s *v1beta1.ExperimentStatus) bool {
	kind := current(s).Type
	return kind == v1beta1.ExperimentSucceeded || kind == v1beta1.ExperimentFailed
}

type experimentGauge struct {
	cache client.Reader
	desc  *prometheus.Desc
}

func (g *experimentGauge) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

func (g *experimentGauge) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var list v1beta1.ExperimentList
	if err := g.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ch <- prometheus.NewInvalidMetric(g.desc, err)
		return
	}
	type key struct{ namespace, phase string }
	n := map[key]int{}
	for i := range list.Items {
		n[key{list.Items[i].Namespace, string(current(&list.Items[i].Status).Type)}]++
	}
	for k, v := range n {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(v), k.namespace, k.phase)
	}
}

// known bounds a metric's label: users choose the names.
func known(algorithm string) string {
	if study.KnownAlgorithm(algorithm) {
		return algorithm
	}
	return "unknown"
}
