package server_test

import (
	"runtime"
	"testing"

	"github.com/vernier-ml/vernier/api/proto/katib/v1beta1"
	"github.com/vernier-ml/vernier/collector"
)

// Whoever reaches the port may ask for a curve of any size.
func TestALongCurveIsRefusedWithoutReadingIt(t *testing.T) {
	k := newKatibOver(t, "sqlite:"+t.TempDir()+"/points.db")
	points := make([]collector.Point, 8192)
	const n = 1 << 20
	for from := int64(0); from < n; from += int64(len(points)) {
		for i := range points {
			points[i] = collector.Point{Metric: "loss", Value: 1, Step: from + int64(i), Time: katibNow, Source: "stdout", Seq: from + int64(i)}
		}
		if err := k.store.Append(t.Context(), trial, collector.Attempt{ID: "pod/0", Started: katibNow}, points); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := k.read(t, &katibv1beta1.GetObservationLogRequest{TrialName: trial.Name})
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("a curve of a million points was given")
	}
	if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 64 {
		t.Errorf("a refused question took %d MiB", got)
	}
}

// The collector of a pushing pod has its journal under the same names.
func TestReportsToTheManagerDoNotAcknowledgeTheSidecarsJournal(t *testing.T) {
	k := newKatib(t)
	sidecar := collector.Attempt{ID: "pod/0", Started: katibNow}
	p := collector.Point{Metric: "loss", Value: 1, Time: katibNow, Source: "push", Seq: 0}
	if err := k.store.Append(t.Context(), trial, sidecar, []collector.Point{p}); err != nil {
		t.Fatal(err)
	}
	if err := k.report(t, trial.Name, "", "loss", "0.5"); err != nil {
		t.Fatal(err)
	}
	states, err := k.store.Attempts(t.Context(), trial.UID)
	if err != nil {
		t.Fatal(err)
	}
	if got := states[0].Acked["push"]; got != 1 {
		t.Errorf("the sidecar's journal is acknowledged up to %d; it sent 1 byte", got)
	}
}
