package store_test

import (
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

func testSeriesOrder(t *testing.T, s collector.Store) {
	early := collector.Attempt{ID: "zz", Started: base.Add(-time.Hour)}
	twin := collector.Attempt{ID: "pod/0a", Started: first.Started}
	for _, a := range []collector.Attempt{second, twin, first, early} {
		mustAppend(t, s, trialA, a, point("b", 0, 0, 1), point("a", 0, 1, 1))
	}
	var got, attempts []string
	for _, series := range mustPoints(t, s, trialA.UID) {
		got = append(got, series.Attempt.ID+" "+series.Metric)
	}
	for _, a := range mustAttempts(t, s, trialA.UID) {
		attempts = append(attempts, a.Attempt.ID)
	}
	diff(t, "series", []string{"zz a", "zz b", "pod/0 a", "pod/0 b", "pod/0a a", "pod/0a b", "pod/1 a", "pod/1 b"}, got)
	diff(t, "attempts", []string{"zz", "pod/0", "pod/0a", "pod/1"}, attempts)
}

func testSources(t *testing.T, s collector.Store) {
	out, file := point("m", 1, 7, 1), point("m", 2, 7, 2)
	file.Source = "file:/log"
	mustAppend(t, s, trialA, first, out, file)
	diff(t, "points", []collector.Point{out, file}, mustPoints(t, s, trialA.UID)[0].Points)
	diff(t, "acked", map[string]int64{"stdout": 8, "file:/log": 8}, mustAttempts(t, s, trialA.UID)[0].Acked)
}

func testIsolation(t *testing.T, s collector.Store) {
	again := collector.TrialID{Namespace: trialA.Namespace, Name: trialA.Name, UID: "uid-again"}
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	mustAppend(t, s, again, first, point("m", 0, 0, 2))
	mustAppend(t, s, trialB, first, point("m", 0, 0, 3))
	for uid, want := range map[string]float64{trialA.UID: 1, again.UID: 2, trialB.UID: 3} {
		diff(t, uid, []collector.Series{{Attempt: first, Metric: "m", Points: []collector.Point{point("m", 0, 0, want)}}},
			mustPoints(t, s, uid))
	}
}

func mustMetrics(t *testing.T, s collector.Store, uid string) []string {
	t.Helper()
	names, err := s.Metrics(t.Context(), uid)
	if err != nil {
		t.Fatalf("metrics: %v", err)
	}
	return names
}

func testMetrics(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, second, point("b", 0, 0, 1), point("a", 0, 1, 1))
	mustAppend(t, s, trialA, first, point("b", 0, 0, 1), point("B", 0, 1, 1))
	mustAppend(t, s, trialB, first, point("c", 0, 0, 1))
	diff(t, "metrics", []string{"B", "a", "b"}, mustMetrics(t, s, trialA.UID))
	diff(t, "metrics of an unknown trial", []string(nil), mustMetrics(t, s, "unknown"))
	if err := s.Delete(t.Context(), trialA.UID); err != nil {
		t.Fatal(err)
	}
	diff(t, "metrics after delete", []string(nil), mustMetrics(t, s, trialA.UID))
	diff(t, "metrics of the other trial", []string{"c"}, mustMetrics(t, s, trialB.UID))
}
