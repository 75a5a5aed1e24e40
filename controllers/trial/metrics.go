package trial

import (
	"cmp"
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/metrics"
)

// Metrics are the trial controller's metrics. No label names a trial or an
// experiment: their number stays bounded.
type Metrics struct {
	created, finished, retries *prometheus.CounterVec
	duration                   *prometheus.HistogramVec
	katib                      metrics.Katib
}

// NewMetrics registers the metrics with reg; the trials that there are, are counted in
// cache.
func NewMetrics(reg prometheus.Registerer, cache client.Reader) *Metrics {
	count := func(name func(v1beta1.TrialConditionType) string) func(context.Context, func(namespace, state string)) error {
		return func(ctx context.Context, add func(namespace, state string)) error {
			var list v1beta1.TrialList
			err := cache.List(ctx, &list, client.UnsafeDisableDeepCopy)
			for i := range list.Items {
				add(list.Items[i].Namespace, name(last(&list.Items[i].Status).Type))
			}
			return err
		}
	}
	metrics.NewCurrent(reg, "vernier_trials", "Trials that exist, by state.", "state", count(resultLabel))
	metrics.NewCurrent(reg, "katib_trials_current", "Katib's name: trials that exist, by the last condition.", "status",
		count(func(t v1beta1.TrialConditionType) string { return cmp.Or(string(t), "Unknown") }))
	f := promauto.With(reg)
	return &Metrics{
		created: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trials_created_total", Help: "Trials whose job was created.",
		}, []string{"namespace"}),
		finished: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trials_finished_total",
			Help: "Trials that ended, by result (succeeded, failed, killed, pruned, metrics_unavailable).",
		}, []string{"namespace", "result"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vernier_trial_duration_seconds",
			Help:    "Time from the creation of a trial's job to the trial's end.",
			Buckets: prometheus.ExponentialBuckets(1, 3, 12),
		}, []string{"namespace", "result"}),
		retries: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trial_retries_total", Help: "Jobs that were gone before they ended and were created again.",
		}, []string{"namespace"}),
		katib: metrics.NewKatib(reg, "trial", "created", "deleted", "succeeded", "failed", "metrics_unavailable"),
	}
}

func (m *Metrics) wrote(t *v1beta1.Trial, before, after *v1beta1.TrialStatus) {
	had, has := last(before), last(after)
	if had.Type == "" {
		m.katib.Inc("created", t.Namespace)
	}
	if had.Type == has.Type {
		return
	}
	switch has.Type {
	case v1beta1.TrialCreated:
	case v1beta1.TrialRunning:
		m.created.WithLabelValues(t.Namespace).Inc()
	default:
		result := resultLabel(has.Type)
		m.katib.Inc(result, t.Namespace)
		m.finished.WithLabelValues(t.Namespace, result).Inc()
		if after.StartTime != nil && after.CompletionTime != nil {
			m.duration.WithLabelValues(t.Namespace, result).Observe(after.CompletionTime.Sub(after.StartTime.Time).Seconds())
		}
	}
}

func resultLabel(state v1beta1.TrialConditionType) string {
	switch state {
	case v1beta1.TrialMetricsUnavailable:
		return "metrics_unavailable"
	case v1beta1.TrialEarlyStopped:
		return "pruned"
	default:
		return strings.ToLower(cmp.Or(string(state), string(v1beta1.TrialCreated)))
	}
}
