package source

import (
	"context"

	"github.com/vernier-ml/vernier/collector/parse"
)

// ScrapeNames returns the names that an endpoint shows, and the size of its page
// in bytes.
func ScrapeNames(ctx context.Context, url string) (names []string, size int64, err error) {
	r := &scrapeRun{cfg: ScrapeConfig{URL: url}, page: newPage([]parse.Selector(nil)), client: newScrapeClient()}
	defer r.client.CloseIdleConnections()
	if err := r.fetch(ctx, false); err != nil {
		return nil, 0, err
	}
	return r.page.seen(), r.page.size, nil
}
