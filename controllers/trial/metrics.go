package trial

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
	"github.com/vernier-ml/vernier/controllers/metrics"
)

// Metrics are the trial controller's metrics. No label names a trial or an
// experiment: their number stays bounded.
type Metrics struct {
	created, finished, retries, gpu *prometheus.CounterVec
	duration, queue                 *prometheus.HistogramVec
	katib                           metrics.Katib
}

// NewMetrics registers the metrics; the trials that there are, are counted in cache.
func NewMetrics(o metrics.Options, cache client.Reader) *Metrics {
	count := func(name func(v1beta1.TrialConditionType) string) metrics.Collect {
		return func(ctx context.Context, add func(float64, ...string)) error {
			var list v1beta1.TrialList
			err := cache.List(ctx, &list, client.UnsafeDisableDeepCopy)
			for i := range list.Items {
				add(1, list.Items[i].Namespace, name(last(&list.Items[i].Status).Type))
			}
			return err
		}
	}
	metrics.NewCurrent(o.Registry, "vernier_trials", "Trials that exist, by state.", []string{"namespace", "state"}, count(resultLabel))
	if o.Katib {
		metrics.NewCurrent(o.Registry, "katib_trials_current", "Katib's name: trials that exist, by the last condition.", []string{"namespace", "status"},
			count(func(t v1beta1.TrialConditionType) string { return cmp.Or(string(t), "Unknown") }))
	}
	f := promauto.With(o.Registry)
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
			Help:    "Seconds from the creation of a trial's job to the trial's end.",
			Buckets: prometheus.ExponentialBuckets(1, 3, 12),
		}, []string{"namespace", "result"}),
		queue: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vernier_trial_queue_seconds",
			Help:    "Seconds from the creation of a trial's job to the start of its program: for a node, a volume, an image. Observed when the trial ends.",
			Buckets: prometheus.ExponentialBuckets(0.5, 3, 12),
		}, []string{"namespace", "result"}),
		gpu: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_gpu_seconds_total", Help: "GPUs (limits */gpu) of the pods of trials that ended, times the seconds that the pods had them.",
		}, []string{"namespace"}),
		retries: f.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trial_retries_total", Help: "Jobs that failed, or were gone before they ended, and were created again.",
		}, []string{"namespace"}),
		katib: metrics.NewKatib(o, "trial", "created", "deleted", "succeeded", "failed", "metrics_unavailable"),
	}
}

func (m *Metrics) wrote(t *v1beta1.Trial, pods []corev1.Pod, before, after *v1beta1.TrialStatus) {
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
			if began := firstStart(pods, t.Spec.PrimaryContainerName); !began.IsZero() {
				m.queue.WithLabelValues(t.Namespace, result).Observe(max(0, began.Sub(after.StartTime.Time).Seconds()))
			}
			m.gpu.WithLabelValues(t.Namespace).Add(gpuSeconds(pods, after.CompletionTime.Time))
		}
	}
}

// firstStart is when a container of one of the pods started first, as far as they know.
func firstStart(pods []corev1.Pod, container string) (first time.Time) {
	for i := range pods {
		for _, s := range pods[i].Status.ContainerStatuses {
			if s.Name != container {
				continue
			}
			for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
				var at time.Time
				if state.Running != nil {
					at = state.Running.StartedAt.Time
				} else if state.Terminated != nil {
					at = state.Terminated.StartedAt.Time
				}
				if !at.IsZero() && (first.IsZero() || at.Before(first)) {
					first = at
				}
			}
		}
	}
	return first
}

// gpuSeconds is for how long the pods had GPUs.
func gpuSeconds(pods []corev1.Pod, end time.Time) (sum float64) {
	for i := range pods {
		if pods[i].Status.StartTime == nil {
			continue
		}
		had := max(0, end.Sub(pods[i].Status.StartTime.Time).Seconds())
		for _, c := range pods[i].Spec.Containers {
			for name, n := range c.Resources.Limits {
				if strings.HasSuffix(string(name), "/gpu") {
					sum += n.AsApproximateFloat64() * had
				}
			}
		}
	}
	return sum
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
