package report_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/report"
)

// The service has no room for more points of the trial, and says so to each call.
func TestPointsOfAFullTrialAreGivenUp(t *testing.T) { synctest.Test(t, pointsOfAFullTrial) }

func pointsOfAFullTrial(t *testing.T) {
	const limit = 3 * report.MaxBatch
	s := newDirectService(t, limit, nil)
	src := numbers{source: "stdout", n: 10 * report.MaxBatch, drain: over()}
	cfg := s.config(t, "", src)
	cfg.Drain = over()
	client := report.NewClient(cfg)
	summary, err := client.Run(t.Context()) // Abandon is never closed
	if !errors.Is(err, report.ErrNotDelivered) || !strings.Contains(err.Error(), "at most 3072 are kept") {
		t.Errorf("error %v", err)
	}
	for _, part := range []string{"7168 points were not delivered", "no more is stored of this trial", "--store-max-points"} {
		if !strings.Contains(summary.Note, part) {
			t.Errorf("note %q does not say %q", summary.Note, part)
		}
	}
	if n := s.calls.Load(); n > 25 { // some are repeated until the store is counted again
		t.Errorf("%d calls: what is given up is sent", n)
	}
	if stats := client.Stats(); stats.Sent != limit || stats.Undelivered != src.n-limit || stats.Refused != 0 {
		t.Errorf("stats %+v", stats)
	}
	// The trial takes the summary, because the attempt is not final.
	s.wantStored(t, false, numbers{source: "stdout", n: limit})
	want := collector.Observe([]collector.Series{{Attempt: attempt, Metric: "loss", Points: src.all()}}, "loss")
	got := collector.Observe(summary.Series(), "loss")
	if summary.Final || got.Latest.Text != want.Latest.Text || got.Min.Text != want.Min.Text || got.Max.Text != want.Max.Text {
		t.Errorf("summary %+v gives %+v, want %+v", summary, got, want)
	}
}

// A call that is refused for its size is no more than that.
func TestACallThatIsTooLargeDoesNotEndTheReports(t *testing.T) { synctest.Test(t, callThatIsTooLarge) }

func callThatIsTooLarge(t *testing.T) {
	refused := false
	s := newDirectService(t, 0, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !refused && strings.HasSuffix(r.URL.Path, "/Report") {
			refused = true
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "8") // ResourceExhausted
			return
		}
		next.ServeHTTP(w, r)
	})
	src := numbers{source: "stdout", n: 2 * report.MaxBatch, drain: over()}
	cfg := s.config(t, "", src)
	cfg.Drain = over()
	client := report.NewClient(cfg)
	summary, err := client.Run(t.Context())
	if stats := client.Stats(); err != nil || !summary.Final || stats.Refused != report.MaxBatch || stats.Sent != report.MaxBatch {
		t.Errorf("%+v, %v, stats %+v", summary, err, stats)
	}
}
