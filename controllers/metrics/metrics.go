// Package metrics holds what the metrics of the controllers have in common.
package metrics

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Options say where metrics are registered, and which there are beside the usual ones.
type Options struct {
	Registry prometheus.Registerer
	// Katib adds those that Katib has, under its names.
	Katib bool
	// Experiments is how many experiments are named by a metric, at most.
	Experiments int
}

// Katib counts objects by namespace under the names that Katib gives its counters,
// such as katib_trial_created_total. The zero value counts nothing.
type Katib map[string]*prometheus.CounterVec

// NewKatib registers Katib's counters of a kind, which is experiment or trial, if o
// asks for them.
func NewKatib(o Options, kind string, what ...string) Katib {
	if !o.Katib {
		return nil
	}
	k := Katib{}
	for _, w := range what {
		k[w] = promauto.With(o.Registry).NewCounterVec(prometheus.CounterOpts{
			Name: "katib_" + kind + "_" + w + "_total", Help: "Katib's name: " + kind + "s, " + strings.ReplaceAll(w, "_", " ") + ".",
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

// Collect tells what there is by add, which sums up what has equal labels.
type Collect func(ctx context.Context, add func(value float64, labels ...string)) error

// Current is a gauge that is computed at each scrape, so it cannot drift.
type Current struct {
	desc    *prometheus.Desc
	collect Collect
}

// NewCurrent registers a gauge with labels.
func NewCurrent(reg prometheus.Registerer, name, help string, labels []string, collect Collect) {
	reg.MustRegister(&Current{prometheus.NewDesc(name, help, labels, nil), collect})
}

// Describe implements prometheus.Collector.
func (g *Current) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

// Collect implements prometheus.Collector.
func (g *Current) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	const separator = "\xff" // in no name
	sums := map[string]float64{}
	if err := g.collect(ctx, func(value float64, labels ...string) { sums[strings.Join(labels, separator)] += value }); err != nil {
		ch <- prometheus.NewInvalidMetric(g.desc, err)
		return
	}
	for labels, sum := range sums {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, sum, strings.Split(labels, separator)...)
	}
}
