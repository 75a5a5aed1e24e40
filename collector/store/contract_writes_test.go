package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

func testIdempotent(t *testing.T, s collector.Store) {
	batch := []collector.Point{point("m", 0, 0, 1), point("m", 0, 1, 1), point("n", 0, 2, math.NaN())}
	mustAppend(t, s, trialA, first, batch...)
	once := mustPoints(t, s, trialA.UID)
	mustAppend(t, s, trialA, first, batch...)
	mustAppend(t, s, trialA, first, append(batch, batch...)...)
	diff(t, "points", once, mustPoints(t, s, trialA.UID))
}

func testOverlap(t *testing.T, s collector.Store) {
	var all []collector.Point
	for i := range int64(20_001) { // more than engines take at once
		all = append(all, point("m", i, i*10, float64(i)/3))
	}
	mustAppend(t, s, trialA, first, all[:15_000]...)
	mustAppend(t, s, trialA, first, all[5_000:]...)
	diff(t, "points", all, mustPoints(t, s, trialA.UID)[0].Points)
}

func testFirstStays(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	renamed, later := trialA, first
	renamed.Name, later.Started = "other", base.Add(time.Hour)
	mustAppend(t, s, renamed, later, point("m", 5, 0, 2))
	diff(t, "points", []collector.Series{{Attempt: first, Metric: "m", Points: []collector.Point{point("m", 0, 0, 1)}}},
		mustPoints(t, s, trialA.UID))
	ids := mustTrials(t, s)
	diff(t, "trials", []collector.TrialID{trialA}, ids)
}

func testAtomic(t *testing.T, s collector.Store) {
	good := point("m", 0, 0, 1)
	refused := map[string]struct {
		trial   collector.TrialID
		attempt collector.Attempt
		bad     func(*collector.Point)
	}{
		"trial without UID":  {collector.TrialID{Name: "n"}, first, func(*collector.Point) {}},
		"attempt without ID": {trialA, collector.Attempt{}, func(*collector.Point) {}},
		"no metric":          {trialA, first, func(p *collector.Point) { p.Metric = "" }},
		"no source":          {trialA, first, func(p *collector.Point) { p.Source = "" }},
		"negative sequence":  {trialA, first, func(p *collector.Point) { p.Seq = -1 }},
		"sequence too large": {trialA, first, func(p *collector.Point) { p.Seq = math.MaxInt64 }},
	}
	for name, tc := range refused {
		bad := point("m", 1, 1, 2)
		tc.bad(&bad)
		if err := s.Append(t.Context(), tc.trial, tc.attempt, []collector.Point{good, bad}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	ids := mustTrials(t, s)
	diff(t, "trials", []collector.TrialID(nil), ids)
	diff(t, "points", []collector.Series(nil), mustPoints(t, s, trialA.UID))
}

func testAcked(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 10, 1), point("m", 0, 4, 1))
	diff(t, "after 10", map[string]int64{"stdout": 11}, mustAttempts(t, s, trialA.UID)[0].Acked)
	mustAppend(t, s, trialA, first, point("m", 0, 3, 1))
	diff(t, "after an older one", map[string]int64{"stdout": 11}, mustAttempts(t, s, trialA.UID)[0].Acked)
	mustAppend(t, s, trialA, first, point("m", 0, 12, 1))
	diff(t, "after 12", map[string]int64{"stdout": 13}, mustAttempts(t, s, trialA.UID)[0].Acked)
}

func testFinish(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	mustAppend(t, s, trialA, second)
	for _, note := range []string{"three lines could not be read", ""} {
		if err := s.Finish(t.Context(), trialA, first, note); err != nil {
			t.Fatal(err)
		}
		diff(t, "attempts", []collector.AttemptState{
			{Attempt: first, Acked: map[string]int64{"stdout": 1}, Final: true, Note: note},
			{Attempt: second},
		}, mustAttempts(t, s, trialA.UID))
	}
	if err := s.Finish(t.Context(), trialB, first, ""); err != nil {
		t.Fatalf("finish of an attempt that reported nothing: %v", err)
	}
	diff(t, "attempts", []collector.AttemptState{{Attempt: first, Final: true}}, mustAttempts(t, s, trialB.UID))
}

func testNote(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	mustAppend(t, s, trialA, second)
	want := []collector.AttemptState{{Attempt: first, Acked: map[string]int64{"stdout": 1}}, {Attempt: second}}
	for _, note := range []string{"acc was not found", "acc was not found, nor f1", ""} {
		want[0].Note = note
		if err := s.Note(t.Context(), trialA, first, note); err != nil {
			t.Fatal(err)
		}
		diff(t, "attempts", want, mustAttempts(t, s, trialA.UID))
	}
	if err := s.Finish(t.Context(), trialA, first, "two lines"); err != nil {
		t.Fatal(err)
	}
	if err := s.Note(t.Context(), trialA, first, "late"); err != nil {
		t.Fatal(err)
	}
	want[0].Note, want[0].Final = "two lines", true
	diff(t, "after the end", want, mustAttempts(t, s, trialA.UID))
	if err := s.Note(t.Context(), trialB, first, "nothing came yet"); err != nil {
		t.Fatal(err)
	}
	diff(t, "an attempt that reported nothing", []collector.AttemptState{{Attempt: first, Note: "nothing came yet"}}, mustAttempts(t, s, trialB.UID))
}

func testConcurrency(t *testing.T, s collector.Store) {
	const trials, batches, size = 8, 20, 10
	var wg sync.WaitGroup
	uid := func(i int) string { return fmt.Sprintf("uid-%d", i) }
	for i := range trials * 2 { // two writers for each trial send the same
		wg.Go(func() {
			trial := collector.TrialID{Namespace: "ns", Name: uid(i / 2), UID: uid(i / 2)}
			for b := range batches {
				var points []collector.Point
				for k := range size {
					n := int64(b*size + k)
					points = append(points, point("m", n, n, float64(n)))
				}
				if err := s.Append(t.Context(), trial, first, points); err != nil {
					t.Errorf("append: %v", err)
				}
				// What was acknowledged is visible.
				states, err := s.Attempts(t.Context(), trial.UID)
				if err != nil || len(states) != 1 || states[0].Acked["stdout"] < int64((b+1)*size) {
					t.Errorf("after batch %d: %+v, %v", b, states, err)
				}
			}
		})
	}
	wg.Wait()
	var want []collector.Point
	for n := range int64(batches * size) {
		want = append(want, point("m", n, n, float64(n)))
	}
	for i := range trials {
		diff(t, uid(i), []collector.Series{{Attempt: first, Metric: "m", Points: want}}, mustPoints(t, s, uid(i)))
	}
}

func testCancelled(t *testing.T, s collector.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, trialA, first, []collector.Point{point("m", 0, 0, 1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v, want context.Canceled", err)
	}
	scanErr := s.Scan(ctx, trialA.UID, nil, func(collector.Attempt, collector.Point) error { return nil })
	_, metricsErr := s.Metrics(ctx, trialA.UID)
	for call, err := range map[string]error{"scan": scanErr, "metrics": metricsErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", call, err)
		}
	}
	diff(t, "points", []collector.Series(nil), mustPoints(t, s, trialA.UID))
}
