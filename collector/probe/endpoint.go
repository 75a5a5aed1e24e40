package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/scrape"
)

// endpoint is what a Prometheus client library serves.
type endpoint struct {
	url   string
	bytes int64
	names []string
}

// scrapePatience is how long an answer may take, as in a trial.
const scrapePatience = 10 * time.Second

func (e *endpoint) Source(metrics []string) (collector.Source, error) {
	return scrape.New(scrape.Config{URL: e.url, Metrics: metrics, LastPatience: scrapePatience, Drain: ended(), Clock: timeless})
}

func (e *endpoint) Describe(r *Report) {
	r.Kind, r.Path, r.Bytes = PrometheusMetric, e.url, e.bytes
	for i, m := range r.Missing {
		if base, _, labels := strings.Cut(m.Name, "{"); labels && slices.Contains(e.names, strings.TrimSpace(base)) {
			r.Missing[i].Hint = base + " is there, with other labels"
		}
	}
}

func (e *endpoint) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	if e.names, e.bytes, err = scrape.Names(ctx, e.url); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNothing, err)
	}
	return e.names, nil, nil
}
