package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/collector/store/storetest"
	"github.com/vernier-ml/vernier/server"
)

func measured(t *testing.T) (collector.Store, *prometheus.Registry) {
	t.Helper()
	plain, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	s, err := server.MeasureStore(plain, registry)
	if err != nil {
		t.Fatal(err)
	}
	return s, registry
}

func TestAMeasuredStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, _ string) collector.Store {
		t.Helper()
		s, _ := measured(t)
		return s
	}, storetest.Options{})
}

func TestEveryOperationOfAMeasuredStoreIsCounted(t *testing.T) {
	s, registry := measured(t)
	ctx, trial, attempt := t.Context(), collector.TrialID{UID: "uid"}, collector.Attempt{ID: "pod/0"}
	for call, act := range map[string]func() error{
		"append":   func() error { return s.Append(ctx, trial, attempt, nil) },
		"finish":   func() error { return s.Finish(ctx, trial, attempt, "") },
		"attempts": func() error { _, err := s.Attempts(ctx, trial.UID); return err },
		"points":   func() error { _, err := s.Points(ctx, trial.UID); return err },
		"observe":  func() error { _, err := s.Observe(ctx, trial.UID); return err },
		"metrics":  func() error { _, err := s.Metrics(ctx, trial.UID); return err },
		"trials":   func() error { _, err := s.Trials(ctx); return err },
		"delete":   func() error { return s.Delete(ctx, trial.UID) },
	} {
		if err := act(); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	want := []string{"append", "attempts", "delete", "finish", "metrics", "observe", "points", "trials"}
	if diff := cmp.Diff(want, operations(t, registry)); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

// operations are those that were counted once.
func operations(t *testing.T, from prometheus.Gatherer) (ops []string) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetHistogram().GetSampleCount() == 1 {
				ops = append(ops, m.GetLabel()[0].GetValue())
			}
		}
	}
	return ops
}
