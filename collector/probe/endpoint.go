package probe

import (
	"context"
	"errors"
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
	late  bool // the second answer
}

// scrapePatience is how long an answer may take, as in a trial.
const scrapePatience = 10 * time.Second

func (e *endpoint) Source(metrics []string) (collector.Source, error) {
	return scrape.New(scrape.Config{URL: e.url, Metrics: metrics, LastPatience: scrapePatience, Drain: ended(), Clock: timeless})
}

func (e *endpoint) Trouble(err error) Trouble {
	e.late = e.late || errors.Is(err, context.DeadlineExceeded)
	return plain(err, "prometheus")
}

// hint implements hinter.
func (e *endpoint) hint(name string) string {
	base, _, labels := strings.Cut(name, "{")
	switch {
	case !slices.Contains(e.names, strings.TrimSpace(base)):
		return ""
	case e.late:
		return fmt.Sprintf("the address showed %s, and did not answer again within %s", base, scrapePatience)
	case labels:
		return base + " is there, with other labels"
	}
	return ""
}

func (e *endpoint) Describe(r *Report) { r.Kind, r.Path, r.Bytes = PrometheusMetric, e.url, e.bytes }

func (e *endpoint) Names(ctx context.Context) (names []string, hints map[string]string, err error) {
	names, e.bytes, err = scrape.Names(ctx, e.url)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNothing, err)
	}
	slices.Sort(names)
	e.names = names
	return names, nil, nil
}
