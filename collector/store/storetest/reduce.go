package storetest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

// appendRandom stores points that meet in steps, sources and values: of trials that
// were resumed, begun anew, without steps and with values that are not numbers.
func appendRandom(t *testing.T, s collector.Store, trial collector.TrialID, r *rand.Rand) {
	t.Helper()
	for _, attempt := range []collector.Attempt{second, first, {ID: "pod/0a", Started: first.Started}, {ID: "no start time"}} {
		var batch []collector.Point
		checkpoint, stepless := int64(r.IntN(5)), r.IntN(3)
		for i := range int64(r.IntN(40)) {
			p := point(randomMetrics[r.IntN(3)], checkpoint+i/3, i, float64(r.IntN(5)))
			p.Source = []string{"stdout", "file:/log", "push"}[r.IntN(3)]
			p.Time = base.Add(time.Duration(r.IntN(3)) * time.Nanosecond)
			switch r.IntN(10) {
			case 0:
				p.Value = math.NaN()
			case 1:
				p.Value, p.Text = math.NaN(), "diverged"
			case 2:
				p.Value = math.Inf(r.IntN(2)*2 - 1)
			case 3:
				p.Text = "1.00"
			case 4:
				p.Value = math.Copysign(0, -1)
			}
			if r.IntN(4) < stepless {
				p.Step = collector.NoStep
			}
			batch = append(batch, p)
		}
		r.Shuffle(len(batch), func(i, k int) { batch[i], batch[k] = batch[k], batch[i] })
		mustAppend(t, s, trial, attempt, batch...)
	}
}

var randomMetrics = []string{"loss", "accuracy", "f1"}

// randomTrials is how many trials the tests by chance look at.
const randomTrials = 25

// testReduce compares with what the points give, for every strategy.
func testReduce(t *testing.T, s collector.Store) {
	for seed := range uint64(randomTrials) {
		r := rand.New(rand.NewPCG(seed, 7))
		trial := collector.TrialID{Namespace: "ns", Name: "t", UID: string(rune('A' + seed))}
		appendRandom(t, s, trial, r)
		series := mustPoints(t, s, trial.UID)
		diff(t, "observations", collector.Reduce(series, asks("f1", "unknown")...), mustReduce(t, s, trial.UID, asks("f1", "unknown")...))
		var all []collector.Ask
		for _, metric := range randomMetrics {
			all = append(all, asks(metric)...)
		}
		diff(t, "observations", collector.Reduce(series, all...), mustReduce(t, s, trial.UID, all...))
	}
	diff(t, "no ask", []collector.Observation(nil), mustReduce(t, s, "A"))
	diff(t, "an unknown trial", collector.Reduce(nil, asks("loss")...), mustReduce(t, s, "nobody", asks("loss")...))
}

// asks asks for metrics by every strategy.
func asks(metrics ...string) []collector.Ask {
	var all []collector.Ask
	for _, m := range metrics {
		for _, strategy := range []collector.Strategy{"", collector.StrategyMin, collector.StrategyMax, collector.StrategyLatest,
			collector.MeanLast(1), collector.MeanLast(4), collector.MeanLast(collector.MaxMeanLast)} {
			all = append(all, collector.Ask{Metric: m, Strategy: strategy})
		}
		for _, objective := range []string{"loss", "accuracy", "unknown"} {
			for _, maximize := range []bool{false, true} {
				all = append(all, collector.Ask{Metric: m, Strategy: collector.StrategyBestAtStep, Objective: objective, Maximize: maximize})
			}
		}
	}
	return all
}

func mustReduce(t *testing.T, s collector.Store, uid string, asks ...collector.Ask) []collector.Observation {
	t.Helper()
	observations, err := s.Reduce(t.Context(), uid, asks...)
	if err != nil {
		t.Fatalf("reduce: %v", err)
	}
	return observations
}

func testScanEnds(t *testing.T, s collector.Store) {
	trial := collector.TrialID{UID: "A"}
	appendRandom(t, s, trial, rand.New(rand.NewPCG(1, 9)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := 0
	err := s.Scan(ctx, trial.UID, nil, func(collector.Attempt, collector.Point) error {
		read++
		cancel()
		return nil
	})
	if read != 1 || err == nil {
		t.Errorf("%d points after the caller's end, error %v", read-1, err)
	}
}

// testScan checks the order, which condensers rely on, and that nothing is missing.
func testScan(t *testing.T, s collector.Store) {
	type placed struct {
		Attempt string
		collector.Point
	}
	for seed := range uint64(5) {
		trial := collector.TrialID{UID: string(rune('A' + seed))}
		appendRandom(t, s, trial, rand.New(rand.NewPCG(seed, 9)))
		for _, metrics := range [][]string{nil, {"loss"}, {"f1", "accuracy", "unknown"}, {"unknown"}} {
			var want, got []placed
			for _, series := range mustPoints(t, s, trial.UID, metrics...) {
				for _, p := range series.Points {
					want = append(want, placed{series.Attempt.ID, p})
				}
			}
			err := s.Scan(t.Context(), trial.UID, metrics, func(a collector.Attempt, p collector.Point) error {
				got = append(got, placed{a.ID, p})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			age := map[string]int{"pod/1": 0, "pod/0a": 1, "pod/0": 2, "no start time": 3}
			sortFunc(want, func(a, b placed) bool {
				switch {
				case a.Attempt != b.Attempt:
					return age[a.Attempt] < age[b.Attempt]
				case a.Source != b.Source:
					return a.Source < b.Source
				}
				return a.Seq < b.Seq
			})
			diff(t, "points", want, got)
		}
	}
}
