package report

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector/contract"
)

// DialConfig says how to reach the report service.
type DialConfig struct {
	// URL is "http://host:port" (HTTP/2 without TLS) or "https://host:port".
	URL string
	// Token is the trial's token, made by Sign.
	Token string
	// Traceparent is sent with each call. Empty means none.
	Traceparent string
	// CA is PEM or base64 of PEM. Empty means the system's authorities.
	CA string
}

// maxAnswer is the size of an answer that is read, in bytes.
const maxAnswer = 1 << 20

// Dial returns a client of the report service. It makes no connection yet.
func Dial(cfg DialConfig) (vernierv1.ReportServiceClient, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("report service: %s=%q is no URL; write http://host:port or https://host:port", contract.EnvURL, cfg.URL)
	}
	if cfg.Token == "" {
		return nil, fmt.Errorf("report service: no token; set %s", contract.EnvToken)
	}
	transport := &http.Transport{
		Protocols:       new(http.Protocols),
		IdleConnTimeout: 10 * time.Minute,
		// A peer that vanished without a word is noticed within seconds.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}
	switch u.Scheme {
	case "http":
		transport.Protocols.SetUnencryptedHTTP2(true)
	case "https":
		transport.Protocols.SetHTTP2(true)
		if transport.TLSClientConfig, err = tlsConfig(cfg.CA); err != nil {
			return nil, fmt.Errorf("report service: %s: %w", contract.EnvCA, err)
		}
	default:
		return nil, fmt.Errorf("report service: %s has scheme %q; write http or https", contract.EnvURL, u.Scheme)
	}
	return vernierv1.NewReportServiceClient(&http.Client{Transport: transport}, cfg.URL,
		connect.WithGRPC(), connect.WithReadMaxBytes(maxAnswer), connect.WithAcceptCompression("gzip", nil, nil), connect.WithInterceptors(headers(cfg))), nil
}

func tlsConfig(ca string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca == "" {
		return cfg, nil
	}
	pem := []byte(ca)
	if !strings.Contains(ca, "-----BEGIN") {
		var err error
		if pem, err = base64.StdEncoding.DecodeString(strings.TrimSpace(ca)); err != nil {
			return nil, fmt.Errorf("it is neither PEM nor base64: %w", err)
		}
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("it holds no certificate")
	}
	return cfg, nil
}

func headers(cfg DialConfig) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			r.Header().Set("Authorization", "Bearer "+cfg.Token)
			if cfg.Traceparent != "" {
				r.Header().Set("Traceparent", cfg.Traceparent)
			}
			return next(ctx, r)
		}
	}
}
