package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vernier-ml/vernier/controllers/metrics"
)

// metrics are those that the options ask for.
func (o *options) metrics(registry prometheus.Registerer) metrics.Options {
	return metrics.Options{Registry: registry, Katib: o.metricsCompat == "katib", Experiments: o.metricsNamed}
}

// registerMetrics registers the metrics of the process itself.
func registerMetrics(registry prometheus.Registerer, o options, id identity) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "vernier_build_info", Help: "Always 1; the labels say which build runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	registry.MustRegister(build)
	metrics.NewCurrent(registry, "vernier_certificate_expiry_timestamp_seconds",
		"When the first certificate of a chain that is served ends, in seconds since 1970: own (reports, admission) or given (--webhook-cert-dir).", []string{"certificate"},
		func(_ context.Context, add func(float64, ...string)) error {
			if id.certificate != nil {
				addExpiry("own", add, func() (*tls.Certificate, error) { return id.certificate(nil) })
			}
			if dir := o.webhookCertDir; dir != "" && o.webhookAddress != "" {
				addExpiry("given", add, func() (*tls.Certificate, error) {
					pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
					return &pair, err
				})
			}
			return nil
		})
}

// addExpiry tells when a certificate ends: 0, which is long ago, if there is none that
// can be read. An error would take all other metrics away with it.
func addExpiry(name string, add func(float64, ...string), load func() (*tls.Certificate, error)) {
	var first int64
	pair, err := load()
	if err != nil {
		add(0, name)
		return
	}
	for _, der := range pair.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			add(0, name)
			return
		}
		if end := c.NotAfter.Unix(); first == 0 || end < first {
			first = end
		}
	}
	add(float64(first), name)
}
