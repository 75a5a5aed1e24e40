// Package storetest is the contract of collector.Store as tests. Every store
// passes it.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/collector"
)

// Open opens a store. The name says which: equal names in one test mean the same
// place, so that opening it after Close shows what was kept.
type Open func(t *testing.T, name string) collector.Store

// Options says which optional promises a store makes.
type Options struct {
	// Durable: what was stored is there after Close and Open.
	Durable bool
}

// Run runs the whole contract.
func Run(t *testing.T, open Open, opts Options) {
	t.Helper()
	tests := map[string]func(*testing.T, collector.Store){
		"an unknown trial has nothing and may be deleted":            testUnknown,
		"points come back as they were sent":                         testExact,
		"points are in order of step, then sequence":                 testPointOrder,
		"series are in order of attempt start, then metric":          testSeriesOrder,
		"only the named metrics are returned":                        testMetricFilter,
		"observations are of the named metrics, in their order":      testObserveNames,
		"observations are those of the points":                       testObserve,
		"the names of metrics are known without their points":        testMetrics,
		"sources of one attempt do not touch each other":             testSources,
		"trials are isolated by UID, not by name":                    testIsolation,
		"an append may be repeated":                                  testIdempotent,
		"overlapping batches give the union":                         testOverlap,
		"the first value, identity and start time of a key stay":     testFirstStays,
		"a refused batch leaves nothing":                             testAtomic,
		"a batch of no points registers the attempt":                 testEmptyBatch,
		"acknowledged sequences never go back":                       testAcked,
		"finish marks its attempt only, again and again":             testFinish,
		"delete removes a trial wholly and no other":                 testDelete,
		"a deleted trial may begin again":                            testDeleteThenAppend,
		"trials are listed in order of UID":                          testTrials,
		"many writers and readers at once lose and double nothing":   testConcurrency,
		"a cancelled context writes nothing":                         testCancelled,
		"returned values are copies":                                 testCopies,
		"a large batch is stored":                                    testLarge,
		"odd names are only names":                                   testOddNames,
		"after close every call fails and close may be called again": testClosed,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, "store")
			t.Cleanup(func() { s.Close() }) //nolint:errcheck // tests that care close themselves
			test(t, s)
		})
	}
	if opts.Durable {
		t.Run("what was stored is there after a reopen", func(t *testing.T) { testReopen(t, open) })
	}
}

var (
	base   = time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	trialA = collector.TrialID{Namespace: "ns", Name: "random-0001", UID: "uid-a"}
	trialB = collector.TrialID{Namespace: "other", Name: "random-0001", UID: "uid-b"}
	first  = collector.Attempt{ID: "pod/0", Started: base}
	second = collector.Attempt{ID: "pod/1", Started: base.Add(time.Minute)}
)

func point(metric string, step, seq int64, value float64) collector.Point {
	return collector.Point{Metric: metric, Value: value, Step: step, Seq: seq, Source: "stdout",
		Time: base.Add(time.Duration(seq) * time.Second)}
}

func mustAppend(t *testing.T, s collector.Store, trial collector.TrialID, a collector.Attempt, points ...collector.Point) {
	t.Helper()
	if err := s.Append(t.Context(), trial, a, points); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func mustPoints(t *testing.T, s collector.Store, uid string, metrics ...string) []collector.Series {
	t.Helper()
	series, err := s.Points(t.Context(), uid, metrics...)
	if err != nil {
		t.Fatalf("points: %v", err)
	}
	return series
}

func mustAttempts(t *testing.T, s collector.Store, uid string) []collector.AttemptState {
	t.Helper()
	states, err := s.Attempts(t.Context(), uid)
	if err != nil {
		t.Fatalf("attempts: %v", err)
	}
	return states
}

// same compares values bit by bit, so that -0 and NaN count.
var same = cmp.Options{
	cmp.Comparer(func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
	}),
	cmpopts.EquateEmpty(),
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, same); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func testUnknown(t *testing.T, s collector.Store) {
	diff(t, "points", []collector.Series(nil), mustPoints(t, s, "nobody"))
	diff(t, "attempts", []collector.AttemptState(nil), mustAttempts(t, s, "nobody"))
	if err := s.Delete(t.Context(), "nobody"); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func testExact(t *testing.T, s collector.Store) {
	values := []float64{0, math.Copysign(0, -1), 1, -1.5, 0.1, math.Pi, math.MaxFloat64, math.SmallestNonzeroFloat64,
		1 << 60, math.NaN(), math.Inf(1), math.Inf(-1)}
	var want []collector.Point
	for i, v := range values {
		want = append(want, point("m", int64(i), int64(i), v))
	}
	extra := []collector.Point{
		{Metric: "m", Source: "stdout", Step: 100, Seq: 100, Value: 0.5, Text: "0.50", Time: base},
		{Metric: "m", Source: "stdout", Step: 101, Seq: 101, Value: math.NaN(), Text: "dön\x00e", Time: base},
		{Metric: "m", Source: "stdout", Step: 102, Seq: 102, Value: 1}, // no time
		{Metric: "m", Source: "stdout", Step: math.MaxInt64, Seq: math.MaxInt64 - 1, Value: 1, Time: base},
	}
	want = append(want, extra...)
	mustAppend(t, s, trialA, first, want...)
	diff(t, "series", []collector.Series{{Attempt: first, Metric: "m", Points: want}}, mustPoints(t, s, trialA.UID))

	other := collector.Attempt{ID: "no start time"}
	far := point("m", 0, 0, 1)
	far.Time = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	mustAppend(t, s, trialB, other, far)
	far.Time = time.Time{}
	diff(t, "a time that does not fit becomes the zero time",
		[]collector.Series{{Attempt: other, Metric: "m", Points: []collector.Point{far}}}, mustPoints(t, s, trialB.UID))
}

func testPointOrder(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 2, 30, 1), point("m", 1, 40, 2))
	mustAppend(t, s, trialA, first, point("m", 1, 10, 3), point("m", collector.NoStep, 50, 4), point("m", 2, 20, 5))
	var got []int64
	for _, p := range mustPoints(t, s, trialA.UID)[0].Points {
		got = append(got, p.Seq)
	}
	diff(t, "sequences", []int64{50, 10, 40, 20, 30}, got)
}

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

func testMetricFilter(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("a", 0, 0, 1), point("b", 0, 1, 2), point("c", 0, 2, 3))
	names := func(metrics ...string) (got []string) {
		for _, series := range mustPoints(t, s, trialA.UID, metrics...) {
			got = append(got, series.Metric)
		}
		return got
	}
	diff(t, "two", []string{"a", "c"}, names("c", "a", "a"))
	diff(t, "unknown", []string(nil), names("d"))
	diff(t, "all", []string{"a", "b", "c"}, names())
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
	for i := range int64(300) {
		all = append(all, point("m", i, i*10, float64(i)))
	}
	mustAppend(t, s, trialA, first, all[:200]...)
	mustAppend(t, s, trialA, first, all[100:]...)
	diff(t, "points", all, mustPoints(t, s, trialA.UID)[0].Points)
}

func testFirstStays(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	renamed, later := trialA, first
	renamed.Name, later.Started = "other", base.Add(time.Hour)
	mustAppend(t, s, renamed, later, point("m", 5, 0, 2))
	diff(t, "points", []collector.Series{{Attempt: first, Metric: "m", Points: []collector.Point{point("m", 0, 0, 1)}}},
		mustPoints(t, s, trialA.UID))
	ids, err := s.Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	ids, err := s.Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "trials", []collector.TrialID(nil), ids)
	diff(t, "points", []collector.Series(nil), mustPoints(t, s, trialA.UID))
}

func testEmptyBatch(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first)
	diff(t, "attempts", []collector.AttemptState{{Attempt: first}}, mustAttempts(t, s, trialA.UID))
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
}

func testDeleteThenAppend(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	if err := s.Delete(t.Context(), trialA.UID); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, trialA, second, point("m", 0, 0, 2))
	diff(t, "points", []collector.Series{{Attempt: second, Metric: "m", Points: []collector.Point{point("m", 0, 0, 2)}}},
		mustPoints(t, s, trialA.UID))
}

func testTrials(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialB, first)
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	ids, err := s.Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "trials", []collector.TrialID{trialA, trialB}, ids)
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
	_, pointsErr := s.Points(ctx, trialA.UID)
	_, observeErr := s.Observe(ctx, trialA.UID)
	_, metricsErr := s.Metrics(ctx, trialA.UID)
	for call, err := range map[string]error{"points": pointsErr, "observe": observeErr, "metrics": metricsErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", call, err)
		}
	}
	diff(t, "points", []collector.Series(nil), mustPoints(t, s, trialA.UID))
}

func testCopies(t *testing.T, s collector.Store) {
	sent := []collector.Point{point("m", 0, 0, 1)}
	mustAppend(t, s, trialA, first, sent...)
	want := mustPoints(t, s, trialA.UID)
	sent[0].Value = 99
	got := mustPoints(t, s, trialA.UID)
	got[0].Points[0].Value, got[0].Metric = 99, "other"
	mustAttempts(t, s, trialA.UID)[0].Acked["stdout"] = 99
	diff(t, "points", want, mustPoints(t, s, trialA.UID))
	diff(t, "acked", map[string]int64{"stdout": 1}, mustAttempts(t, s, trialA.UID)[0].Acked)
}

func testLarge(t *testing.T, s collector.Store) {
	var want []collector.Point
	for i := range int64(20_001) {
		want = append(want, point("m", i, i, float64(i)/3))
	}
	mustAppend(t, s, trialA, first, want...)
	got := mustPoints(t, s, trialA.UID)
	if len(got) != 1 || !cmp.Equal(want, got[0].Points, same) {
		t.Errorf("the points differ from those sent")
	}
}

func testOddNames(t *testing.T, s collector.Store) {
	for i, name := range []string{"'; DROP TABLE point; --", "train/loss", "损失", "a\nb", "%", "M", "m"} {
		trial := collector.TrialID{Namespace: name, Name: name, UID: name}
		attempt := collector.Attempt{ID: name, Started: base}
		p := point(name, 0, 0, float64(i))
		p.Source = name
		mustAppend(t, s, trial, attempt, p)
		diff(t, name, []collector.Series{{Attempt: attempt, Metric: name, Points: []collector.Point{p}}},
			mustPoints(t, s, name, name))
	}
}

func testClosed(t *testing.T, s collector.Store) {
	mustAppend(t, s, trialA, first, point("m", 0, 0, 1))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	_, trialsErr := s.Trials(t.Context())
	_, pointsErr := s.Points(t.Context(), trialA.UID)
	_, attemptsErr := s.Attempts(t.Context(), trialA.UID)
	_, observeErr := s.Observe(t.Context(), trialA.UID)
	_, metricsErr := s.Metrics(t.Context(), trialA.UID)
	for call, err := range map[string]error{
		"append":   s.Append(t.Context(), trialA, first, []collector.Point{point("m", 0, 1, 1)}),
		"finish":   s.Finish(t.Context(), trialA, first, ""),
		"delete":   s.Delete(t.Context(), trialA.UID),
		"trials":   trialsErr,
		"points":   pointsErr,
		"attempts": attemptsErr,
		"observe":  observeErr,
		"metrics":  metricsErr,
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
