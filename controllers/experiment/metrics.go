package experiment

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/metrics"
	"github.com/vernier-ml/vernier/controllers/study"
)

// Metrics are the experiment controller's metrics. Labels name experiments only where
// that is asked for: their number stays bounded.
type Metrics struct {
	completed, suggestions, fallbacks, pruned *prometheus.CounterVec
	suggestTime                               *prometheus.HistogramVec
	katib                                     metrics.Katib
}

// NewMetrics registers the metrics; those of the experiments that there are, are
// computed from cache.
func NewMetrics(o metrics.Options, cache client.Reader, now func() time.Time) *Metrics {
	registerCurrent(o, cache, now)
	f := promauto.With(o.Registry)
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
			Help:    "Seconds that algorithms took to propose, by phase: fit (new trials waited until it had learned from the last results), acquire (the call), total.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}, []string{"algorithm", "phase"}),
		fallbacks: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_suggestion_fallbacks_total",
			Help: "Proposals for which an algorithm could not do its normal work, by what it did or why.",
		}, []string{"algorithm", "fallback"}),
		pruned: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_prune_decisions_total",
			Help: "Decisions of early stopping rules about running trials (stop, continue). They decide every few seconds.",
		}, []string{"pruner", "decision"}),
		katib: metrics.NewKatib(o, "experiment", "created", "deleted", "succeeded", "failed"),
	}
}

// registerCurrent registers what is computed at each scrape.
func registerCurrent(o metrics.Options, cache client.Reader, now func() time.Time) {
	each := func(visit func(*v1beta1.Experiment, func(float64, ...string))) metrics.Collect {
		return func(ctx context.Context, add func(float64, ...string)) error {
			var list v1beta1.ExperimentList
			err := cache.List(ctx, &list, client.UnsafeDisableDeepCopy)
			for i := range list.Items {
				visit(&list.Items[i], add)
			}
			return err
		}
	}
	phases := each(func(e *v1beta1.Experiment, add func(float64, ...string)) {
		add(1, e.Namespace, cmp.Or(string(current(&e.Status).Type), "Unknown"))
	})
	metrics.NewCurrent(o.Registry, "vernier_experiments", "Experiments that exist, by phase (the last condition).", []string{"namespace", "phase"}, phases)
	if o.Katib {
		metrics.NewCurrent(o.Registry, "katib_experiments_current", "Katib's name: experiments that exist, by the last condition.", []string{"namespace", "status"}, phases)
	}
	metrics.NewCurrent(o.Registry, "vernier_budget_trials_remaining", "Trials that experiments which have not ended may still start, by maxTrialCount.", []string{"namespace"},
		each(func(e *v1beta1.Experiment, add func(float64, ...string)) {
			if most := e.Spec.MaxTrialCount; most != nil && !over(&e.Status) {
				add(float64(max(0, *most-e.Status.Trials)), e.Namespace)
			}
		}))
	metrics.NewCurrent(o.Registry, "vernier_experiment_idle_seconds",
		"Of the experiments that have not ended, the longest time since a trial of one began, reported or ended. Suspended ones and those without a trialTemplate count while trials run.", []string{"namespace"},
		func(ctx context.Context, add func(float64, ...string)) error { return idle(ctx, cache, now(), add) })
	if o.Experiments > 0 {
		metrics.NewCurrent(o.Registry, "vernier_experiment_best_value", "The objective of the best trial of the newest experiments, as many as --metrics-experiments says.", []string{"namespace", "experiment", "metric"},
			func(ctx context.Context, add func(float64, ...string)) error {
				return best(ctx, cache, o.Experiments, add)
			})
	}
}

// idle tells for each namespace how long the experiment that waits longest has waited.
func idle(ctx context.Context, cache client.Reader, now time.Time, add func(float64, ...string)) error {
	var experiments v1beta1.ExperimentList
	if err := cache.List(ctx, &experiments, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	var trials v1beta1.TrialList
	if err := cache.List(ctx, &trials, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	last := map[types.UID]time.Time{}
	for i := range trials.Items {
		t := &trials.Items[i]
		owner := metav1.GetControllerOf(t)
		if owner == nil {
			continue
		}
		if at := t.LastActivity(); at.After(last[owner.UID]) {
			last[owner.UID] = at
		}
	}
	longest := map[string]float64{}
	for i := range experiments.Items {
		e := &experiments.Items[i]
		rests := e.Spec.Suspend || e.RunsOutside() // until a user does something
		if over(&e.Status) || rests && e.Status.TrialsRunning == 0 {
			continue
		}
		since := last[e.UID]
		if at := e.LastActivity(); at.After(since) {
			since = at
		}
		longest[e.Namespace] = max(longest[e.Namespace], now.Sub(since).Seconds())
	}
	for namespace, seconds := range longest {
		add(seconds, namespace)
	}
	return nil
}

// best tells the best value of the newest experiments that have one.
func best(ctx context.Context, cache client.Reader, most int, add func(float64, ...string)) error {
	var list v1beta1.ExperimentList
	if err := cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b v1beta1.Experiment) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	for i := range list.Items[:min(most, len(list.Items))] {
		e := &list.Items[i]
		if e.Spec.Objective == nil {
			continue
		}
		for _, m := range e.Status.CurrentOptimalTrial.Observation.Metrics {
			if m.Name != e.Spec.Objective.ObjectiveMetricName {
				continue
			}
			if value, err := strconv.ParseFloat(m.By(e.Spec.Objective.Strategy(m.Name, e.Spec.Objective.Type.DefaultStrategy())), 64); err == nil {
				add(value, e.Namespace, e.Name, m.Name)
			}
		}
	}
	return nil
}

func (m *Metrics) suggested(algorithm string, proposals []study.Proposal, err error, fit, acquire time.Duration) {
	outcome := "ok"
	switch {
	case err != nil:
		outcome = "error"
	case len(proposals) == 0:
		outcome = "empty"
	}
	m.suggestions.WithLabelValues(algorithm, outcome).Inc()
	for phase, took := range map[string]time.Duration{"fit": fit, "acquire": acquire, "total": fit + acquire} {
		m.suggestTime.WithLabelValues(algorithm, phase).Observe(took.Seconds())
	}
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
