package source_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source"
	"github.com/vernier-ml/vernier/collector/source/events"
	"github.com/vernier-ml/vernier/collector/source/scrape"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
	"github.com/vernier-ml/vernier/collector/source/wandb"
	"time"
)

// missingOf reads a source to its end and returns what it says of missing
// metrics, and its other troubles.
func missingOf(t *testing.T, src collector.Source) (metrics []string, text string, others []string) {
	t.Helper()
	for _, err := range src.Points(t.Context()) {
		var missing *source.MissingError
		switch {
		case errors.As(err, &missing):
			metrics, text = append(metrics, missing.Metrics...), text+missing.Text
		case err != nil:
			others = append(others, err.Error())
		}
	}
	return metrics, text, others
}

// Few messages on missing metrics are kept, so there is one for all of them.
func TestAllThatIsMissingIsSaidAtOnce(t *testing.T) {
	metrics := []string{"loss", "acc", "f1", "recall", "auc"}
	dir := t.TempDir()
	sourcetest.Put(t, dir, "tfevents", sourcetest.EventFile(1, "loss=1", "accuracy=2"))
	sourcetest.Append(t, filepath.Join(dir, "run-a.wandb"), append([]byte(sourcetest.WandbHeader), sourcetest.WandbLog(0, "loss", 3)...))
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("loss 1\nacc_total 1\n")) }))
	defer e.Close()
	tests := map[string]struct {
		open func() (collector.Source, error)
		want string
	}{
		"events": {func() (collector.Source, error) {
			return events.New(events.Config{Dir: dir, Metrics: metrics, Drain: sourcetest.Closed(), Clock: sourcetest.Quick()})
		}, `f1 was not found; recall was not found; auc was not found; there is accuracy, loss`},
		"W&B": {func() (collector.Source, error) {
			return wandb.New(wandb.Config{Dir: dir, Metrics: metrics, Drain: sourcetest.Closed(), Clock: sourcetest.Quick()})
		}, `acc was not found; f1 was not found; recall was not found; auc was not found; there is loss`},
		"a page": {func() (collector.Source, error) {
			return scrape.New(scrape.Config{URL: e.URL, Metrics: metrics, LastPatience: 10 * time.Second, Drain: sourcetest.Closed(), Clock: sourcetest.Quick()})
		}, e.URL + ": acc was not found: did you mean acc_total?; f1 was not found; recall was not found; auc was not found; there is acc_total, loss"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			src, err := tc.open()
			if err != nil {
				t.Fatal(err)
			}
			missing, text, _ := missingOf(t, src)
			if d := cmp.Diff(tc.want, text); d != "" || len(missing) < 3 {
				t.Errorf("%q are missing; it says (-want +got):\n%s", missing, d)
			}
		})
	}
}
