package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/source"
)

// Files of the PrometheusMetric kind in the shared directory.
const (
	scrapeSpool = "prometheus.spool" // points that were scraped
	scrapeState = "prometheus.state" // which series they are of
)

// prepareScrape scrapes at once and keeps what it finds on disk, since an
// endpoint tells nothing twice.
func prepareScrape(ctx context.Context, j job) (opener, error) {
	spool, err := report.OpenSpool(filepath.Join(j.cfg.dir, scrapeSpool), "prometheus:"+j.cfg.url, 0)
	if err != nil {
		return nil, err
	}
	scrape, err := newScrape(ctx, j, spool)
	if err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	go spool.Fill(ctx, scrape) //nolint:errcheck // Points yields its error
	return func(map[string]int64) ([]collector.Source, error) {
		return []collector.Source{spool}, nil
	}, nil
}

func newScrape(ctx context.Context, j job, spool *report.Spool) (*source.Scrape, error) {
	cfg := source.ScrapeConfig{
		URL: j.cfg.url, Header: http.Header{}, Metrics: j.cfg.metrics,
		State: filepath.Join(j.cfg.dir, scrapeState), Last: map[string]collector.Point{}, Drain: j.drain,
	}
	for _, h := range j.cfg.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("--%s is %q; write it as \"Name: value\"", report.FlagHeader, h)
		}
		cfg.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	for p, err := range spool.Kept(ctx) {
		if err != nil {
			return nil, err
		}
		cfg.Last[p.Metric] = p
	}
	if j.cfg.sharedNetwork {
		cfg.Mine = ownListener(j.cfg)
	}
	return source.NewScrape(cfg)
}

// ownListener guards an endpoint on loopback; another one is not of this
// machine's trials.
func ownListener(cfg runConfig) func() error {
	u, err := url.Parse(cfg.url)
	if err != nil {
		return nil // NewScrape says so
	}
	ip := net.ParseIP(u.Hostname())
	port, err := strconv.Atoi(u.Port())
	if err != nil || u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil
	}
	return source.OwnListener("/proc", port, report.EnvPodUID+"="+cfg.podUID)
}
