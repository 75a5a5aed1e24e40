package experiment

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/metrics"
	"github.com/vernier-ml/vernier/controllers/study"
)

// Metrics are the experiment controller's metrics. No label names an
// experiment: their number stays bounded.
type Metrics struct {
	completed, suggestions, fallbacks, stopped *prometheus.CounterVec
	suggestTime                                *prometheus.HistogramVec
	katib                                      metrics.Katib
}

// NewMetrics registers the metrics with reg; the experiments that there are, are
// counted in cache.
func NewMetrics(reg prometheus.Registerer, cache client.Reader) *Metrics {
	count := func(ctx context.Context, add func(namespace, state string)) error {
		var list v1beta1.ExperimentList
		err := cache.List(ctx, &list, client.UnsafeDisableDeepCopy)
		for i := range list.Items {
			add(list.Items[i].Namespace, cmp.Or(string(current(&list.Items[i].Status).Type), "Unknown"))
		}
		return err
	}
	metrics.NewCurrent(reg, "vernier_experiments", "Experiments that exist, by phase (the last condition).", "phase", count)
	metrics.NewCurrent(reg, "katib_experiments_current", "Katib's name: experiments that exist, by the last condition.", "status", count)
	f := promauto.With(reg)
	return &Metrics{
		completed: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_experiments_completed_total",
			Help: "Experiments that ended, by result (succeeded, failed).",
		}, []string{"namespace", "result", "algorithm"}),
		suggestions: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_suggestions_total",
			Help: "Calls of algorithms, by outcome (ok, empty, error).",
		}, []string{"algorithm", "outcome"}),
		suggestTime: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vernier_suggest_duration_seconds",
			Help:    "Time that algorithms took to propose.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"algorithm", "phase"}),
		fallbacks: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_suggestion_fallbacks_total",
			Help: "Proposals for which an algorithm could not do its normal work, by what it did or why.",
		}, []string{"algorithm", "fallback"}),
		stopped: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trials_stopped_early_total",
			Help: "Trials that an early stopping rule gave up.",
		}, []string{"rule"}),
		katib: metrics.NewKatib(reg, "experiment", "created", "deleted", "succeeded", "failed"),
	}
}

func (m *Metrics) suggested(algorithm string, proposals []study.Proposal, err error, took time.Duration) {
	outcome := "ok"
	switch {
	case err != nil:
		outcome = "error"
	case len(proposals) == 0:
		outcome = "empty"
	}
	m.suggestions.WithLabelValues(algorithm, outcome).Inc()
	m.suggestTime.WithLabelValues(algorithm, "total").Observe(took.Seconds())
	for _, p := range proposals {
		if p.Fallback != "" {
			m.fallbacks.WithLabelValues(algorithm, p.Fallback).Inc()
		}
	}
}

func (m *Metrics) wrote(exp *v1beta1.Experiment, before, after *v1beta1.ExperimentStatus) {
	if len(before.Conditions) == 0 {
		m.katib.Inc("created", exp.Namespace)
	}
	if over(before) || !over(after) {
		return
	}
	result, algorithm := strings.ToLower(string(current(after).Type)), ""
	if exp.Spec.Algorithm != nil {
		algorithm = known(exp.Spec.Algorithm.AlgorithmName)
	}
	m.katib.Inc(result, exp.Namespace)
	m.completed.WithLabelValues(exp.Namespace, result, algorithm).Inc()
}

func over(s *v1beta1.ExperimentStatus) bool {
	kind := current(s).Type
	return kind == v1beta1.ExperimentSucceeded || kind == v1beta1.ExperimentFailed
}

// known bounds a metric's label: users choose the names.
func known(algorithm string) string {
	if study.KnownAlgorithm(algorithm) {
		return algorithm
	}
	return "unknown"
}
