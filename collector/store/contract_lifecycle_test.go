package store_test

import (
	"math"
	"testing"

	"github.com/vernier-ml/vernier/collector"
)

func testUnknown(t *testing.T, s collector.Store) {
	diff(t, "points", []collector.Series(nil), mustPoints(t, s, "unknown"))
	diff(t, "attempts", []collector.AttemptState(nil), mustAttempts(t, s, "unknown"))
	if err := s.Delete(t.Context(), "unknown"); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func testDelete(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	mustAppend(t, s, trialA, second, point("n", 0, 0, 1))
	mustAppend(t, s, trialB, first, point("m", 0, 0, 3))
	before := mustPoints(t, s, trialB.UID)
	if err := s.Delete(t.Context(), trialA.UID); err != nil {
		t.Fatal(err)
	}
	diff(t, "points", []collector.Series(nil), mustPoints(t, s, trialA.UID))
	diff(t, "attempts", []collector.AttemptState(nil), mustAttempts(t, s, trialA.UID))
	diff(t, "the other trial", before, mustPoints(t, s, trialB.UID))
	mustAppend(t, s, trialA, second, point("m", 0, 0, 2))
	diff(t, "points after it began again", []collector.Series{{Attempt: second, Metric: "m", Points: []collector.Point{point("m", 0, 0, 2)}}},
		mustPoints(t, s, trialA.UID))
}

func testClosed(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	_, attemptsErr := s.Attempts(t.Context(), trialA.UID)
	_, metricsErr := s.Metrics(t.Context(), trialA.UID)
	_, inventoryErr := s.Inventory(t.Context())
	_, statErr := s.Stat(t.Context())
	for call, err := range map[string]error{
		"append":    s.Append(t.Context(), trialA, first, []collector.Point{point("m", 0, 1, 1)}),
		"finish":    s.Finish(t.Context(), trialA, first, ""),
		"delete":    s.Delete(t.Context(), trialA.UID),
		"attempts":  attemptsErr,
		"metrics":   metricsErr,
		"inventory": inventoryErr,
		"stat":      statErr,
		"scan":      s.Scan(t.Context(), trialA.UID, nil, func(collector.Attempt, collector.Point) error { return nil }),
	} {
		if err == nil {
			t.Errorf("%s after close: no error", call)
		}
	}
}

func testReopen(t *testing.T, open opener) {
	s := open(t, "kept")
	mustAppend(t, s, trialA, first, point("m", 0, 0, math.Inf(-1)), point("n", 1, 1, math.NaN()))
	if err := s.Finish(t.Context(), trialA, first, "note"); err != nil {
		t.Fatal(err)
	}
	points, attempts := mustPoints(t, s, trialA.UID), mustAttempts(t, s, trialA.UID)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "kept")
	defer s.Close() //nolint:errcheck // the end of a test
	diff(t, "points", points, mustPoints(t, s, trialA.UID))
	diff(t, "attempts", attempts, mustAttempts(t, s, trialA.UID))
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1), point("m", 2, 2, 2))
	got := mustPoints(t, s, trialA.UID, "m")
	diff(t, "points after another append", []collector.Series{{Attempt: first, Metric: "m",
		Points: []collector.Point{point("m", 0, 0, math.Inf(-1)), point("m", 2, 2, 2)}}}, got)
}
