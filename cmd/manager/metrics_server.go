package main

import (
	"crypto/tls"
	"net/http"
	"net/http/pprof"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// metricsOptions serve the metrics, and the profiles if they are wanted, over TLS to
// those whom the API server lets get their paths. The embedded mode has neither TLS nor
// accounts; it serves metrics on loopback.
func metricsOptions(o options, id identity) metricsserver.Options {
	m := metricsserver.Options{BindAddress: o.metricsAddress}
	if o.embedded {
		return m
	}
	m.SecureServing, m.FilterProvider = true, filters.WithAuthenticationAndAuthorization
	m.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate, c.MinVersion, c.NextProtos = id.certificate, tls.VersionTLS12, []string{"h2", "http/1.1"}
	}}
	if o.pprof {
		// A role for profiles is in config/rbac/users.yaml.
		m.ExtraHandlers = map[string]http.Handler{
			"/debug/pprof/":        http.HandlerFunc(pprof.Index),
			"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
			"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		}
	}
	return m
}
