package storetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/vernier-ml/vernier/collector"
)

func mustObserve(t *testing.T, s collector.Store, uid string, metrics ...string) []collector.Observation {
	t.Helper()
	observations, err := s.Observe(t.Context(), uid, metrics...)
	if err != nil {
		t.Fatalf("observe: %v", err)
	}
	return observations
}

func mustMetrics(t *testing.T, s collector.Store, uid string) []string {
	t.Helper()
	names, err := s.Metrics(t.Context(), uid)
	if err != nil {
		t.Fatalf("metrics: %v", err)
	}
	return names
}

func testObserveNames(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("b", 0, 0, 1), point("a", 0, 1, 2), point("a", 1, 2, 3))
	mustAppend(t, s, trialB, first, point("c", 0, 0, 4))
	counts := func(uid string, metrics ...string) (got []any) {
		for _, o := range mustObserve(t, s, uid, metrics...) {
			got = append(got, o.Metric, o.Points)
		}
		return got
	}
	diff(t, "named", []any{"b", 1, "a", 2}, counts(trialA.UID, "b", "a"))
	diff(t, "all", []any{"a", 2, "b", 1}, counts(trialA.UID))
	diff(t, "another trial's metric", []any{"c", 0, "a", 2}, counts(trialA.UID, "c", "a"))
	diff(t, "named twice", []any{"a", 2, "a", 2}, counts(trialA.UID, "a", "a"))
	diff(t, "an unknown trial", []any{"a", 0}, counts("nobody", "a"))
	diff(t, "all of an unknown trial", []any(nil), counts("nobody"))
	diff(t, "never seen", []collector.Observation{collector.Observe(nil, "c")}, mustObserve(t, s, trialA.UID, "c"))
}

// testObserve compares with what the points give, for trials that were resumed,
// begun anew, without steps and with values that are not numbers.
func testObserve(t *testing.T, s collector.Store) {
	metrics := []string{"loss", "accuracy", "f1"}
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 7))
		trial := collector.TrialID{Namespace: "ns", Name: "t", UID: string(rune('A' + seed))}
		for _, attempt := range []collector.Attempt{second, first, {ID: "pod/0a", Started: first.Started}, {ID: "no start time"}} {
			var batch []collector.Point
			checkpoint, stepless := int64(r.IntN(5)), r.IntN(3)
			for i := range int64(r.IntN(40)) {
				p := point(metrics[r.IntN(3)], checkpoint+i/3, i, float64(r.IntN(5)))
				p.Source = []string{"stdout", "file:/log", "push"}[r.IntN(3)]
				switch r.IntN(10) {
				case 0:
					p.Value = math.NaN()
				case 1:
					p.Value, p.Text = math.NaN(), "diverged"
				case 2:
					p.Value = math.Inf(r.IntN(2)*2 - 1)
				case 3:
					p.Text = "1.00"
				}
				if r.IntN(4) < stepless {
					p.Step = collector.NoStep
				}
				batch = append(batch, p)
			}
			r.Shuffle(len(batch), func(i, k int) { batch[i], batch[k] = batch[k], batch[i] })
			mustAppend(t, s, trial, attempt, batch...)
		}
		series := mustPoints(t, s, trial.UID)
		for _, asked := range [][]string{metrics, metrics[:1], {"f1", "unknown"}} {
			var want []collector.Observation
			for _, metric := range asked {
				want = append(want, collector.Observe(series, metric))
			}
			diff(t, "observations", want, mustObserve(t, s, trial.UID, asked...))
		}
	}
}

func testMetrics(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, second, point("b", 0, 0, 1), point("a", 0, 1, 1))
	mustAppend(t, s, trialA, first, point("b", 0, 0, 1), point("B", 0, 1, 1))
	mustAppend(t, s, trialB, first, point("c", 0, 0, 1))
	diff(t, "metrics", []string{"B", "a", "b"}, mustMetrics(t, s, trialA.UID))
	diff(t, "metrics of an unknown trial", []string(nil), mustMetrics(t, s, "nobody"))
	if err := s.Delete(t.Context(), trialA.UID); err != nil {
		t.Fatal(err)
	}
	diff(t, "metrics after delete", []string(nil), mustMetrics(t, s, trialA.UID))
	diff(t, "metrics of the other trial", []string{"c"}, mustMetrics(t, s, trialB.UID))
}
