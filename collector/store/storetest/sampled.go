package storetest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vernier-ml/vernier/collector"
)

func sortFunc[T any](values []T, less func(a, b T) bool) {
	slices.SortFunc(values, func(a, b T) int {
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
}

func mustSample(t *testing.T, s collector.Store, uid string, buckets int, metrics ...string) []collector.SampledSeries {
	t.Helper()
	series, err := s.Sampled(t.Context(), uid, buckets, metrics...)
	if err != nil {
		t.Fatalf("sampled: %v", err)
	}
	return series
}

// testSampled compares with what the points give, and looks at one case whole.
func testSampled(t *testing.T, s collector.Store) {
	for seed := range uint64(randomTrials) {
		trial := collector.TrialID{UID: string(rune('A' + seed))}
		appendRandom(t, s, trial, rand.New(rand.NewPCG(seed, 8)))
		for _, buckets := range []int{2, 5, 1000} {
			for _, metrics := range [][]string{nil, {"loss"}, {"f1", "unknown"}} {
				diff(t, "buckets", collector.Sample(mustPoints(t, s, trial.UID, metrics...), buckets),
					mustSample(t, s, trial.UID, buckets, metrics...))
			}
		}
	}
	var points []collector.Point
	for i := range int64(10) {
		points = append(points, point("m", i, i, []float64{5, math.NaN(), 3, 9}[i%4]))
	}
	mustAppend(t, s, trialA, first, points...)
	diff(t, "three buckets", []collector.SampledSeries{{Attempt: first, Metric: "m", Buckets: []collector.Bucket{
		{First: 0, Last: 3, Min: 3, Max: 9, Value: 9, Time: points[3].Time, Points: 4},
		{First: 4, Last: 7, Min: 3, Max: 9, Value: 9, Time: points[7].Time, Points: 4},
		{First: 8, Last: 9, Min: 5, Max: 5, Value: math.NaN(), Time: points[9].Time, Points: 2},
	}}}, mustSample(t, s, trialA.UID, 3))
	for _, buckets := range []int{-1, 0, 1, collector.MaxBuckets + 1} {
		_, err := s.Sampled(t.Context(), trialA.UID, buckets)
		_, all := s.SampledExperiment(t.Context(), "ns", "e", buckets)
		if err == nil || all == nil {
			t.Errorf("%d buckets: no error", buckets)
		}
	}
	diff(t, "an unknown trial", []collector.SampledSeries(nil), mustSample(t, s, "nobody", 10))
}

func testSampledExperiment(t *testing.T, s collector.Store) {
	trial := func(namespace, experiment, name string) collector.TrialID {
		return collector.TrialID{Namespace: namespace, Experiment: experiment, Name: name, UID: namespace + "/" + name}
	}
	a, b := trial("ns", "e", "e-0002"), trial("ns", "e", "e-0001")
	for i, id := range []collector.TrialID{a, b, trial("ns", "E", "E-0001"), trial("other", "e", "e-0003"), trial("ns", "e ", "x")} {
		mustAppend(t, s, id, second, point("m", 0, 0, float64(i)), point("n", 0, 1, 1))
		mustAppend(t, s, id, first, point("m", 0, 0, float64(i)))
	}
	mustAppend(t, s, trial("ns", "e", "e-0004"), first, point("n", 0, 0, 1))
	mustAppend(t, s, trial("ns", "e", "e-0005"), first)
	all := func(metrics ...string) []collector.SampledTrial {
		trials, err := s.SampledExperiment(t.Context(), "ns", "e", 10, metrics...)
		if err != nil {
			t.Fatal(err)
		}
		return trials
	}
	var want []collector.SampledTrial
	for _, id := range []collector.TrialID{b, a} {
		want = append(want, collector.SampledTrial{Trial: id, Series: mustSample(t, s, id.UID, 10, "m")})
	}
	diff(t, "one metric", want, all("m"))
	var names []string
	for _, st := range all() {
		names = append(names, st.Trial.Name)
	}
	diff(t, "all metrics", []string{"e-0001", "e-0002", "e-0004"}, names)
	if trials, err := s.SampledExperiment(t.Context(), "ns", "none", 10); err != nil || len(trials) > 0 {
		t.Errorf("an unknown experiment: %v, %v", trials, err)
	}
}
