package command

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
	"github.com/vernier-ml/vernier/collector/contract"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/source/scrape"
)

// Files of the PrometheusMetric kind in the shared directory.
const (
	scrapeSpool = "prometheus.spool" // points that were scraped
	scrapeState = "prometheus.state" // which series they are of
)

// prepareScrape scrapes at once and keeps what it finds on disk, since an
// endpoint tells nothing twice.
func prepareScrape(ctx context.Context, r *runner, a *attempt) (opener, error) {
	if err := writeEnv(r.cfg, nil); err != nil {
		return nil, err
	}
	spool, err := report.OpenSpool(filepath.Join(r.cfg.dir, scrapeSpool), "prometheus:"+r.cfg.url, 0)
	if err != nil {
		return nil, err
	}
	scrape, err := newScrape(ctx, r.cfg, a, spool)
	if err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	go spool.Fill(ctx, scrape) //nolint:errcheck // Points yields its error
	r.journalEnd = spool.End
	return r.sessions(ctx, a, r.split(spool)), nil
}

func newScrape(ctx context.Context, cfg runConfig, a *attempt, spool *report.Spool) (*scrape.Source, error) {
	header, err := scrapeHeader(cfg.headers)
	if err != nil {
		return nil, err
	}
	to := scrape.Config{
		URL: cfg.url, Header: header, Metrics: cfg.metrics,
		State: filepath.Join(cfg.dir, scrapeState), Last: map[string]collector.Point{}, Drain: a.over.Done(),
	}
	for p, err := range spool.Kept(ctx) {
		if err != nil {
			return nil, err
		}
		to.Last[p.Metric] = p
	}
	if cfg.sharedNetwork {
		to.Mine = ownListener(cfg)
	}
	return scrape.New(to)
}

// scrapeHeader reads the headers for the endpoint. They may be secret, so an error
// does not show them.
func scrapeHeader(lines string) (http.Header, error) {
	header := http.Header{}
	n := 0
	for line := range strings.SplitSeq(lines, "\n") {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue // a Secret often ends with a line break
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("line %d of %s is no header; write it as \"Name: value\" (it is not shown, since it may be secret)", n, contract.EnvScrapeHeaders)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
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
	return scrape.OwnListener("/proc", port, contract.EnvPodUID+"="+cfg.podUID)
}
