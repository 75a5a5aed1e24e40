//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
)

const (
	benchTrials  = 1000
	benchMetrics = 10
)

// benchStores opens an empty store of each kind that lasts.
func benchStores(b *testing.B, run func(b *testing.B, s collector.Store)) {
	for _, d := range store.Drivers() {
		if d.Scheme == "memory" {
			continue
		}
		b.Run("store="+d.Scheme, func(b *testing.B) {
			url := "sqlite:" + filepath.Join(b.TempDir(), "points.db")
			if start := starters[d.Scheme]; start != nil {
				server := start(b)
				if err := server.Create(b.Context(), "bench"); err != nil {
					b.Fatal(err)
				}
				url = server.URL("bench")
			}
			s, err := store.Open(b.Context(), url)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { s.Close() }) //nolint:errcheck // the end of the benchmark
			run(b, s)
		})
	}
}

func benchTrial(i int) collector.TrialID {
	return collector.TrialID{Namespace: "default", Name: fmt.Sprintf("bench-%04d", i), Experiment: "bench",
		UID: fmt.Sprintf("3f2a9c1e-0000-4000-8000-%012d", i)}
}

// benchReport is what a trial prints in one second: a line with the value of each
// metric.
func benchReport(round int64) []collector.Point {
	points := make([]collector.Point, benchMetrics)
	for m := range points {
		points[m] = collector.Point{Metric: fmt.Sprint("metric", m), Source: "stdout", Step: round, Seq: round*250 + int64(m)*23,
			Value: 1 / (float64(round) + float64(m) + 1.1), Time: time.Unix(1_790_000_000+round, int64(m)*1_234_567).UTC()}
	}
	return points
}

var benchAttempt = collector.Attempt{ID: "5a1d0b57-0000-4000-8000-000000000000/0", Started: time.Unix(1_790_000_000, 0).UTC()}

// BenchmarkStoreAppend: one operation is one second of 1,000 trials that each report
// 10 metrics, sent at once. It must take less than a second.
func BenchmarkStoreAppend(b *testing.B) {
	benchStores(b, func(b *testing.B, s collector.Store) {
		var mu sync.Mutex
		var took []time.Duration
		round := int64(0)
		for b.Loop() {
			var wg sync.WaitGroup
			for i := range benchTrials {
				wg.Go(func() {
					began := time.Now()
					if err := s.Append(b.Context(), benchTrial(i), benchAttempt, benchReport(round)); err != nil {
						b.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					took = append(took, time.Since(began))
				})
			}
			wg.Wait()
			round++
		}
		slices.Sort(took)
		b.ReportMetric(float64(round*benchTrials*benchMetrics)/b.Elapsed().Seconds(), "points/s")
		b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
		stat, err := s.Stat(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if stat.Points != round*benchTrials*benchMetrics {
			b.Fatalf("%d points are stored of %d", stat.Points, round*benchTrials*benchMetrics)
		}
		b.ReportMetric(float64(stat.Bytes)/float64(stat.Points), "B/point")
	})
}

// BenchmarkStoreRead reads one trial with 10 metrics of 50,000 points each, and an
// experiment of 100 trials with 10 metrics of 100 points each.
func BenchmarkStoreRead(b *testing.B) {
	const rounds, trials, short = 50_000, 100, 100
	benchStores(b, func(b *testing.B, s collector.Store) {
		fill := func(trial int, n int64) {
			var batch []collector.Point
			for round := range n {
				if batch = append(batch, benchReport(round)...); len(batch) >= 4000 || round == n-1 {
					if err := s.Append(b.Context(), benchTrial(trial), benchAttempt, batch); err != nil {
						b.Fatal(err)
					}
					batch = batch[:0]
				}
			}
		}
		for i := range trials {
			fill(i, short)
		}
		long := collector.TrialID{Namespace: "default", Name: "long", Experiment: "long", UID: benchTrial(trials).UID}
		fill(trials, rounds)
		reads := []struct {
			name string
			act  func(ctx context.Context) error
		}{
			{"observe=500k-points-1-metric", func(ctx context.Context) error {
				_, err := collector.Reduce(ctx, s, long.UID, collector.Ask{Metric: "metric3"})
				return err
			}},
			{"observe=500k-points-10-metrics", func(ctx context.Context) error { return reduceAll(ctx, s, long.UID) }},
			{"sampled=500k-points-1-metric", func(ctx context.Context) error {
				_, err := collector.Sample(ctx, s, long.UID, 256, "metric3")
				return err
			}},
			{"observe=1k-points", func(ctx context.Context) error { return reduceAll(ctx, s, benchTrial(1).UID) }},
			{"sampled=100-trials-1-metric", func(ctx context.Context) error {
				for i := range trials {
					if _, err := collector.Sample(ctx, s, benchTrial(i).UID, 256, "metric3"); err != nil {
						return err
					}
				}
				return nil
			}},
		}
		for _, read := range reads {
			b.Run(read.name, func(b *testing.B) {
				for b.Loop() {
					if err := read.act(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

func reduceAll(ctx context.Context, s collector.Store, uid string) error {
	metrics, err := s.Metrics(ctx, uid)
	if err != nil {
		return err
	}
	var asks []collector.Ask
	for _, m := range metrics {
		asks = append(asks, collector.Ask{Metric: m})
	}
	_, err = collector.Reduce(ctx, s, uid, asks...)
	return err
}
