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
	header, err := scrapeHeader(cfg)
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

// scrapeHeader is what flags and environment say, the flags first.
func scrapeHeader(cfg runConfig) (http.Header, error) {
	header := http.Header{}
	add := func(line string) bool {
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if ok && name != "" {
			header.Add(name, strings.TrimSpace(value))
		}
		return ok && name != ""
	}
	for _, h := range cfg.headers {
		if !add(h) {
			return nil, fmt.Errorf("--%s is %q; write it as \"Name: value\"", contract.FlagHeader, h)
		}
	}
	n := 0
	for line := range strings.SplitSeq(cfg.secretHeaders, "\n") {
		n++
		// A Secret often ends with a line break.
		if strings.TrimSpace(line) != "" && !add(line) {
			return nil, fmt.Errorf("line %d of %s is no header; write it as \"Name: value\" (it is not shown, since it may be secret)", n, contract.EnvScrapeHeaders)
		}
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
