package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
)

// appendLong stores n points of loss and n of accuracy, by turns.
func appendLong(tb testing.TB, s *sqlStore, n int64) {
	tb.Helper()
	const batch = 4096
	for from := int64(0); from < n; from += batch {
		points := testPoints(from, min(from+batch, n))
		for _, p := range points {
			p.Metric, p.Seq = "accuracy", p.Seq+1
			points = append(points, p)
		}
		if err := s.Append(tb.Context(), testTrial, testAttempt, points); err != nil {
			tb.Fatal(err)
		}
	}
}

// A sort would hold a whole source in memory.
func TestPointsAreReadInTheOrderOfTheKey(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "points.db"))
	for name, query := range map[string]string{
		"all metrics":  s.dialect.pointQuery(map[int64]string{1: "a"}, false),
		"some metrics": s.dialect.pointQuery(map[int64]string{1: "a", 7: "b"}, true),
	} {
		var plan []string
		err := s.read(t.Context(), "", func(v tx) error {
			return v.each(t.Context(), "EXPLAIN QUERY PLAN "+query, []any{1}, func(rows *sql.Rows) error {
				var id, parent, unused int64
				var detail string
				err := rows.Scan(&id, &parent, &unused, &detail)
				plan = append(plan, detail)
				return err
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"SEARCH point USING PRIMARY KEY (source=?)"}, plan); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", name, diff)
		}
	}
}

func TestOnlyNamedMetricsAreReadFromTheFile(t *testing.T) {
	query := sqliteDialect().pointQuery(map[int64]string{12: "b", 3: "a"}, true)
	if !strings.Contains(query, "metric IN (3, 12)") {
		t.Errorf("query %q", query)
	}
	s := openTest(t, filepath.Join(t.TempDir(), "points.db"))
	appendLong(t, s, 100)
	series, err := collector.ReadSeries(t.Context(), s, testTrial.UID, "loss", "unknown")
	if err != nil {
		t.Fatal(err)
	}
	want := []collector.Series{{Attempt: testAttempt, Metric: "loss", Points: testPoints(0, 100)}}
	if diff := cmp.Diff(want, series); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// The points are counted as they come; what is alive then is what reading holds.
func TestReadingPointsHoldsNone(t *testing.T) {
	const n = 60_000 // 6 MB as points
	s := openTest(t, filepath.Join(t.TempDir(), "points.db"))
	appendLong(t, s, n/2)
	var before, during uint64
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	seen := 0
	before = live()
	err := s.Scan(t.Context(), testTrial.UID, nil, func(collector.Attempt, collector.Point) error {
		if seen++; seen == n {
			during = live()
		}
		return nil
	})
	if err != nil || seen != n {
		t.Fatalf("%d points, %v", seen, err)
	}
	if during > before+2<<20 {
		t.Errorf("%d KiB more are alive after %d points", (during-before)>>10, n)
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, n := range map[string]int64{"points=10k": 5_000, "points=1500k": 750_000} {
		b.Run(name, func(b *testing.B) {
			s := openTest(b, filepath.Join(b.TempDir(), "points.db"))
			appendLong(b, s, n)
			for call, act := range map[string]func(ctx context.Context) error{
				"reduce=one": func(ctx context.Context) error {
					_, err := collector.Reduce(ctx, s, testTrial.UID, collector.Ask{Metric: "loss"})
					return err
				},
				"reduce=two": func(ctx context.Context) error {
					_, err := collector.Reduce(ctx, s, testTrial.UID, collector.Ask{Metric: "loss"}, collector.Ask{Metric: "accuracy"})
					return err
				},
				"points=one": func(ctx context.Context) error {
					_, err := collector.ReadSeries(ctx, s, testTrial.UID, "loss")
					return err
				},
				"metrics": func(ctx context.Context) error { _, err := s.Metrics(ctx, testTrial.UID); return err },
			} {
				b.Run(call, func(b *testing.B) {
					runtime.GC()
					peak := watchHeap(b)
					for b.Loop() {
						if err := act(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(peak())/(1<<20), "peak-MiB")
				})
			}
		})
	}
}

// watchHeap looks at the heap each millisecond until the function that it returns
// is called, which returns by how much it grew at most.
func watchHeap(b *testing.B) (peak func() uint64) {
	b.Helper()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	look := func() uint64 { metrics.Read(sample); return sample[0].Value.Uint64() }
	first, most := look(), uint64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if now := look(); now > first {
					most = max(most, now-first)
				}
			}
		}
	}()
	return func() uint64 { close(stop); <-stopped; return most }
}
