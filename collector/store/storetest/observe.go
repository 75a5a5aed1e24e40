package storetest

import (
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
