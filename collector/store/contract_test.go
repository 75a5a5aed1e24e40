// The files contract_*_test.go are the contract of collector.Store. Every driver
// passes it, and every store that wraps another one.
package store_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vernier-ml/vernier/collector"
)

// opener opens a store. The name says which: equal names in one test mean the same
// place, so that opening it after Close shows what was kept.
type opener func(t *testing.T, name string) collector.Store

// testContract runs the whole contract. durable: what was stored is there after
// Close and another open.
func testContract(t *testing.T, open opener, durable bool) {
	t.Helper()
	tests := map[string]func(*testing.T, collector.Store){
		"an unknown trial has nothing and may be deleted":                     testUnknown,
		"points come back as they were sent":                                  testExact,
		"series are in order of attempt start, then metric":                   testSeriesOrder,
		"a scan hands over all points in the order of aggregators":            testScan,
		"a scan ends with its caller":                                         testScanEnds,
		"trials are listed with their experiment and last report":             testInventory,
		"the points of a trial are counted":                                   testCounts,
		"the store knows its size":                                            testStat,
		"a long trial is deleted while others write":                          testDeleteLong,
		"names are bytes":                                                     testNames,
		"limits are those of every engine":                                    testLimits,
		"the names of metrics are known without their points":                 testMetrics,
		"sources of one attempt do not touch each other":                      testSources,
		"trials are isolated by UID, not by name":                             testIsolation,
		"an append may be repeated":                                           testIdempotent,
		"large batches that overlap give the union":                           testOverlap,
		"the first value, identity and start time of a key stay":              testFirstStays,
		"a refused batch leaves nothing":                                      testAtomic,
		"acknowledged sequences never go back":                                testAcked,
		"finish marks its attempt only, again and again":                      testFinish,
		"a note holds until the next one, or the end":                         testNote,
		"delete removes a trial wholly, and no other, and it may begin again": testDelete,
		"many writers and readers at once lose and double nothing":            testConcurrency,
		"a cancelled context writes nothing":                                  testCancelled,
		"after close every call fails and close may be called again":          testClosed,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, "store")
			t.Cleanup(func() { s.Close() }) //nolint:errcheck // tests that care close themselves
			test(t, s)
		})
	}
	if durable {
		t.Run("what was stored is there after a reopen", func(t *testing.T) { testReopen(t, open) })
		t.Run("two stores of one place agree", func(t *testing.T) { testTwoStores(t, open) })
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
	series, err := collector.ReadSeries(t.Context(), s, uid, metrics...)
	if err != nil {
		t.Fatalf("points: %v", err)
	}
	return series
}

func mustTrials(t *testing.T, s collector.Store) (ids []collector.TrialID) {
	t.Helper()
	infos, err := s.Inventory(t.Context())
	if err != nil {
		t.Fatalf("inventory: %v", err)
	}
	for _, info := range infos {
		ids = append(ids, info.TrialID)
	}
	return ids
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
