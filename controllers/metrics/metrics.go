// Package metrics holds what the metrics of the controllers have in common.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Katib counts objects by namespace under the names that Katib gives its counters,
// such as katib_trial_created_total.
type Katib map[string]*prometheus.CounterVec

// NewKatib registers Katib's counters of a kind, which is experiment or trial.
func NewKatib(reg prometheus.Registerer, kind string, what ...string) Katib {
	k := Katib{}
	for _, w := range what {
		k[w] = promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "katib_" + kind + "_" + w + "_total", Help: "Katib's name: " + kind + "s that were " + w + ".",
		}, []string{"namespace"})
	}
	return k
}

// Inc counts what happened in a namespace; what has no counter is passed over.
func (k Katib) Inc(what, namespace string) {
	if c := k[what]; c != nil {
		c.WithLabelValues(namespace).Inc()
	}
}

// Current is a gauge of the objects that there are, by namespace and state. They are
// counted at each scrape, so it cannot drift.
type Current struct {
	desc  *prometheus.Desc
	count func(ctx context.Context, add func(namespace, state string)) error
}

// NewCurrent registers a gauge. count is called at each scrape.
func NewCurrent(reg prometheus.Registerer, name, help, label string, count func(ctx context.Context, add func(namespace, state string)) error) {
	reg.MustRegister(&Current{prometheus.NewDesc(name, help, []string{"namespace", label}, nil), count})
}

// Describe implements prometheus.Collector.
func (g *Current) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

// Collect implements prometheus.Collector.
func (g *Current) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n := map[[2]string]int{}
	if err := g.count(ctx, func(namespace, state string) { n[[2]string{namespace, state}]++ }); err != nil {
		ch <- prometheus.NewInvalidMetric(g.desc, err)
		return
	}
	for labels, v := range n {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(v), labels[0], labels[1])
	}
}
