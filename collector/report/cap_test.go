package report_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
)

// flood is a source of two metrics that print much more than is kept.
type flood struct {
	points []collector.Point
	drain  <-chan struct{}
}

func newFlood(seed uint64, n int) flood {
	random := rand.New(rand.NewPCG(seed, 3))
	f := flood{drain: over()}
	for i := range n {
		metric := "loss"
		if i%2 == 1 {
			metric = "accuracy"
		}
		f.points = append(f.points, collector.Point{Metric: metric, Source: "stdout", Seq: int64(i) * 10,
			Step: int64(i / 2), Value: random.NormFloat64(), Time: attempt.Started})
	}
	return f
}

func (f flood) Points(ctx context.Context) iter.Seq2[collector.Point, error] {
	return func(yield func(collector.Point, error) bool) {
		for _, p := range f.points {
			if !yield(p, nil) {
				return
			}
		}
		select {
		case <-f.drain:
		case <-ctx.Done():
		}
	}
}

// wantResult checks that what is stored gives the result that all points give.
func (s *service) wantResult(t *testing.T, f flood, metric string) (stored int) {
	t.Helper()
	all := collector.Observe([]collector.Series{{Attempt: attempt, Metric: metric, Points: f.of(metric)}}, metric)
	got, err := collector.Reduce(t.Context(), s.store, trial.UID, collector.Ask{Metric: metric})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(all, got[0], cmpopts.IgnoreFields(all, "Points"), cmpopts.EquateNaNs()); d != "" {
		t.Errorf("%s (-all +stored):\n%s", metric, d)
	}
	return got[0].Points
}

func (f flood) of(metric string) (points []collector.Point) {
	for _, p := range f.points {
		if p.Metric == metric {
			points = append(points, p)
		}
	}
	return points
}

func TestACappedCurveKeepsItsResultAndSaysSo(t *testing.T) { synctest.Test(t, cappedCurve) }

func cappedCurve(t *testing.T) {
	s := newDirectService(t, 0, nil)
	f := newFlood(1, 200_000)
	cfg := s.config(t, "", f)
	cfg.Rate, cfg.Drain, cfg.Attempt.Started = 20, over(), time.Now()
	client := report.NewClient(cfg)
	summary, err := client.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for _, metric := range []string{"loss", "accuracy"} {
		n := s.wantResult(t, f, metric)
		// All comes in one batch, of which a condensed series takes a part.
		if n < 250 || n > 4000 {
			t.Errorf("%d points of %s were kept; at 20 a second, 2000 may come at once", n, metric)
		}
		stored += n
	}
	stats := client.Stats()
	if stats.Read != 200_000 || stats.Sent != int64(stored) || stats.Capped != 200_000-int64(stored) {
		t.Errorf("stats %+v; %d points are stored", stats, stored)
	}
	states, err := s.store.Attempts(t.Context(), trial.UID)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d points were left out of the curve of loss, accuracy: more than 20 a second", stats.Capped)
	if note := states[0].Note; !states[0].Final || !strings.Contains(note, want) {
		t.Errorf("note %q does not say %q", note, want)
	}
	if n := summary.Metrics[0].Count; n != 100_000 {
		t.Errorf("the summary counts %d points", n)
	}
}

// Wherever a collector is killed, and whatever the next one keeps, the result is
// that of all points, and what is stored is a part of them.
func TestACappedCurveKeepsItsResultAcrossKills(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			lives := newLives(seed, 2)
			s := newService(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				dice, kill := lives.roll(3)
				if dice == 0 {
					kill()
				}
				next.ServeHTTP(w, r)
				if dice == 1 {
					kill()
				}
			})
			f := newFlood(seed, 50_000)
			lives.run(t, func() report.Config {
				cfg := s.config(t, "", f)
				cfg.Rate, cfg.Drain, cfg.Attempt.Started = 10, over(), time.Now()
				return cfg
			})
			for _, metric := range []string{"loss", "accuracy"} {
				s.wantResult(t, f, metric)
			}
			series, err := collector.ReadSeries(t.Context(), s.store, trial.UID)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range series {
				s.wantPart(t, f.of(one.Metric), one.Points)
			}
		})
	}
}

func (s *service) wantPart(t *testing.T, all, stored []collector.Point) {
	t.Helper()
	bySeq := map[int64]collector.Point{}
	for _, p := range all {
		bySeq[p.Seq] = p
	}
	for _, p := range stored {
		if d := cmp.Diff(bySeq[p.Seq], p); d != "" {
			t.Fatalf("a stored point was never made:\n%s", d)
		}
	}
}
