package server_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	vernierv1 "github.com/vernier-ml/vernier/api/proto/vernier/v1"
	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/server"
)

func measured(t *testing.T) (collector.Store, *prometheus.Registry) {
	t.Helper()
	plain, err := store.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	registry := prometheus.NewRegistry()
	s, err := server.MeasureStore(plain, registry)
	if err != nil {
		t.Fatal(err)
	}
	return s, registry
}

func TestEveryOperationOfAMeasuredStoreIsCounted(t *testing.T) {
	s, registry := measured(t)
	ctx, trial, attempt := t.Context(), collector.TrialID{UID: "uid"}, collector.Attempt{ID: "pod/0"}
	calls := map[string]func() error{
		"Append":   func() error { return s.Append(ctx, trial, attempt, nil) },
		"Finish":   func() error { return s.Finish(ctx, trial, attempt, "") },
		"Note":     func() error { return s.Note(ctx, trial, attempt, "") },
		"Attempts": func() error { _, err := s.Attempts(ctx, trial.UID); return err },
		"Scan": func() error {
			return s.Scan(ctx, trial.UID, nil, func(collector.Attempt, collector.Point) error { return nil })
		},
		"Metrics":   func() error { _, err := s.Metrics(ctx, trial.UID); return err },
		"Inventory": func() error { _, err := s.Inventory(ctx); return err },
		"Stat":      func() error { _, err := s.Stat(ctx); return err },
		"Delete":    func() error { return s.Delete(ctx, trial.UID) },
	}
	var want []string
	for method := range reflect.TypeFor[collector.Store]().Methods() {
		if method.Name == "Close" {
			continue
		}
		want = append(want, strings.ToLower(method.Name))
		act := calls[method.Name]
		if act == nil {
			t.Errorf("%s is not tried here", method.Name)
		} else if err := act(); err != nil {
			t.Errorf("%s: %v", method.Name, err)
		}
	}
	slices.Sort(want)
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

func TestTheReportServiceTellsHowItIsDoing(t *testing.T) {
	f := newFixture(t, false)
	client := f.dial(t, token(t, trial, time.Now().Add(time.Hour)), "")
	request := &vernierv1.ReportRequest{Attempt: attempt, Points: report.EncodePoints([]collector.Point{
		{Metric: "loss", Source: "stdout", Seq: 1, Time: time.Now()}, {Metric: "loss", Source: "stdout", Seq: 2, Time: time.Now()}})}
	for range 2 { // the second time all is known
		if _, err := client.Report(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Hello(t.Context(), &vernierv1.HelloRequest{}); err == nil {
		t.Error("a Hello without an attempt is answered")
	}
	got := map[string]float64{}
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"vernier_measurements_ingested_total stdout":        4,
		"vernier_measurements_duplicate_total stdout":       2,
		"vernier_measurements_rejected_total invalid":       1,
		"vernier_report_calls_total ok Report":              2,
		"vernier_report_calls_total invalid_argument Hello": 1,
		"vernier_report_call_duration_seconds Report":       2,
		"vernier_report_batch_points":                       2,
		"vernier_report_batch_bytes":                        2,
		"vernier_report_streams":                            1,
		"vernier_report_calls_in_flight":                    0,
		"vernier_ingest_lag_seconds":                        2,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
