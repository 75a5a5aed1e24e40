package storetest

import (
	"fmt"
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

func testReopen(t *testing.T, open Open) {
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

// testThin thins curves of which some points state no step, in several attempts and
// sources, so long that engines do it in parts.
func testThin(t *testing.T, s collector.Store) {
	for _, a := range []collector.Attempt{first, second} {
		var points []collector.Point
		for i := range int64(45_000) {
			p := point([]string{"loss", "accuracy"}[i%2], i/50, i, math.Sin(float64(i*i)))
			if i%3 == 0 {
				p.Step = collector.NoStep
			}
			if p.Source = "stdout"; i%5 == 0 {
				p.Source, p.Text = "file:/log", "text"
			}
			points = append(points, p)
		}
		mustAppend(t, s, trialA, a, points...)
	}
	mustAppend(t, s, trialB, first, point("loss", 0, 0, 1))
	asks := []collector.Ask{{Metric: "loss"}, {Metric: "accuracy"}}
	before, err := collector.Reduce(t.Context(), s, trialA.UID, asks...)
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(t, s, trialA.UID)
	attempts, other := mustAttempts(t, s, trialA.UID), mustPoints(t, s, trialB.UID)
	removed, err := s.Thin(t.Context(), trialA.UID, 16)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := s.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	for _, series := range mustPoints(t, s, trialA.UID) {
		left += int64(len(series.Points))
	}
	if i := infos[0]; left > 2*2*2*(4*16+3) || left+removed != 90_000 || i.Points != left || !i.Thinned || i.TextBytes == 0 || i.TextBytes >= 4*left || infos[1].Thinned {
		t.Errorf("%d points are left, %d were removed, %+v", left, removed, infos)
	}
	after, err := collector.Reduce(t.Context(), s, trialA.UID, asks...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range after {
		before[i].Points, after[i].Points = 0, 0
	}
	diff(t, "observations", before, after)
	for at, step := range stepsOf(t, s, trialA.UID) {
		if steps[at] != step {
			t.Errorf("the point %s is of step %d, and was of %d", at, step, steps[at])
			break
		}
	}
	diff(t, "attempts", attempts, mustAttempts(t, s, trialA.UID))
	diff(t, "the other trial", other, mustPoints(t, s, trialB.UID))
	mustAppend(t, s, trialA, second, point("loss", 1e6, 1e6, 1))
	if infos, err = s.Inventory(t.Context()); err != nil || infos[0].Thinned || infos[0].Points != left+1 {
		t.Errorf("after another point: %+v, %v", infos, err)
	}
}

// stepsOf are the steps to which the points of a trial belong.
func stepsOf(t *testing.T, s collector.Store, uid string) map[string]int64 {
	t.Helper()
	steps, stated := map[string]int64{}, map[string]int64{}
	err := s.Scan(t.Context(), uid, nil, func(a collector.Attempt, p collector.Point) error {
		curve := fmt.Sprint(a.ID, " ", p.Source, " ", p.Metric)
		if p.Step != collector.NoStep {
			stated[curve] = p.Step
		}
		steps[fmt.Sprint(curve, " ", p.Seq)] = stated[curve]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}
