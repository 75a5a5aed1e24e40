package store_test

import (
	"math"
	"testing"
	"time"

	"github.com/vernier-ml/vernier/collector"
)

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
