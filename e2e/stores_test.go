//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/e2e/servers"
)

// starters start the servers of the drivers that need one.
var starters = map[string]func(testing.TB) *servers.Server{
	"mysql":    servers.MySQL,
	"postgres": servers.PostgreSQL,
}

// TestAStoreSurvivesKillsOfItsServer kills the server again and again in the midst
// of appends. Everything that was acknowledged is there, once.
func TestAStoreSurvivesKillsOfItsServer(t *testing.T) {
	for scheme, start := range starters {
		t.Run(scheme, func(t *testing.T) {
			server := start(t)
			if err := server.Create(t.Context(), "killed"); err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(t.Context(), server.URL("killed"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() }) //nolint:errcheck // the end of the test
			const kills, writers = 5, 8
			var acked [writers]atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() { keepAppending(ctx, s, w, &acked[w]) })
			}
			for kill := range kills {
				before := acked[0].Load()
				eventually(t, time.Minute, func(context.Context) error {
					if n := acked[0].Load(); n < before+50 {
						return fmt.Errorf("kill %d: only %d batches were acknowledged, then %d", kill, before, n)
					}
					return nil
				})
				if err := errors.Join(server.Kill(), server.Start(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			wg.Wait()
			for w := range writers {
				checkAppended(t, s, w, acked[w].Load())
			}
		})
	}
}

const killBatch = 10

func killTrial(w int) collector.TrialID {
	return collector.TrialID{Namespace: "ns", Name: fmt.Sprint("kill-", w), Experiment: "kill", UID: fmt.Sprint("uid-", w)}
}

func killBatchPoints(n int64) []collector.Point {
	var points []collector.Point
	for i := n * killBatch; i < (n+1)*killBatch; i++ {
		points = append(points, collector.Point{Metric: fmt.Sprint("m", i%3), Source: "stdout", Step: i, Seq: i, Value: float64(i), Time: time.Unix(i, i).UTC()})
	}
	return points
}

// keepAppending sends batches in turn, each until it is acknowledged, as the
// collector does.
func keepAppending(ctx context.Context, s collector.Store, w int, acked *atomic.Int64) {
	attempt := collector.Attempt{ID: "pod/0", Started: time.Unix(1, 0).UTC()}
	for n := int64(0); ctx.Err() == nil; {
		if s.Append(ctx, killTrial(w), attempt, killBatchPoints(n)) == nil {
			n++
			acked.Store(n)
		}
	}
}

func checkAppended(t *testing.T, s collector.Store, w int, acked int64) {
	t.Helper()
	// The last batch may be there without having been acknowledged.
	got := map[int64]collector.Point{}
	doubled := 0
	err := s.Scan(t.Context(), killTrial(w).UID, nil, func(_ collector.Attempt, p collector.Point) error {
		if _, seen := got[p.Seq]; seen {
			doubled++
		}
		got[p.Seq] = p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(got))
	if n < acked*killBatch || n > (acked+1)*killBatch || n%killBatch != 0 || doubled > 0 {
		t.Errorf("writer %d: %d points in batches of %d, %d batches were acknowledged, %d points are there twice", w, n, killBatch, acked, doubled)
	}
	for batch := range acked {
		for _, want := range killBatchPoints(batch) {
			if d := cmp.Diff(want, got[want.Seq]); d != "" {
				t.Fatalf("writer %d (-want +got):\n%s", w, d)
			}
		}
	}
	t.Logf("writer %d: %d batches acknowledged, %d points stored", w, acked, n)
}
