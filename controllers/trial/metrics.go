package trial

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vernier-ml/vernier/api/v1beta1"
)

// Metrics are the trial controller's metrics. No label names a trial or an
// experiment: their number stays bounded.
type Metrics struct {
	created  *prometheus.CounterVec
	finished *prometheus.CounterVec
	duration *prometheus.HistogramVec
	retries  *prometheus.CounterVec
}

// NewMetrics registers the metrics with reg. The gauge of trials is read from
// cache at each scrape, so it cannot drift.
func NewMetrics(reg prometheus.Registerer, cache client.Reader) (*Metrics, error) {
	m := &Metrics{
		created: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trials_created_total", Help: "Trials whose job was created.",
		}, []string{"namespace"}),
		finished: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trials_finished_total",
			Help: "Trials that ended, by result (succeeded, failed, killed, pruned, metrics_unavailable).",
		}, []string{"namespace", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "vernier_trial_duration_seconds",
			Help:    "Time from the creation of a trial's job to the trial's end.",
			Buckets: prometheus.ExponentialBuckets(1, 3, 12),
		}, []string{"namespace", "result"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vernier_trial_retries_total", Help: "Jobs that were gone before they ended and were created again.",
		}, []string{"namespace"}),
	}
	gauge := &trialGauge{cache: cache, desc: prometheus.NewDesc(
		"vernier_trials", "Trials that exist, by state.", []string{"namespace", "state"}, nil)}
	for _, c := range []prometheus.Collector{m.created, m.finished, m.duration, m.retries, gauge} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// wrote counts what a status write tells of.
func (m *Metrics) wrote(t *v1beta1.Trial, before, after *v1beta1.TrialStatus) {
	had, has := last(before), last(after)
	if had.Type == has.Type {
		return
	}
	switch has.Type {
	case v1beta1.TrialCreated:
	case v1beta1.TrialRunning:
		m.created.WithLabelValues(t.Namespace).Inc()
	default:
		result := resultLabel(has.Type)
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
		return strings.ToLower(string(state))
	}
}

type trialGauge struct {
	cache client.Reader
	desc  *prometheus.Desc
}

func (g *trialGauge) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

func (g *trialGauge) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var list v1beta1.TrialList
	if err := g.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ch <- prometheus.NewInvalidMetric(g.desc, err)
		return
	}
	type key struct{ namespace, state string }
	n := map[key]int{}
	for i := range list.Items {
		state := last(&list.Items[i].Status).Type
		if state == "" {
			state = v1beta1.TrialCreated
		}
		n[key{list.Items[i].Namespace, resultLabel(state)}]++
	}
	for k, v := range n {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(v), k.namespace, k.state)
	}
}
