package command

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	dto "github.com/prometheus/client_model/go"
)

// scraped reads the metrics as Prometheus does.
func (b *bench) scraped() map[string]*dto.MetricFamily {
	b.t.Helper()
	var out, said bytes.Buffer
	if code := dispatch(b.t.Context(), []string{"metrics", "--dir=" + b.dir}, &out, &said); code != 0 {
		b.t.Fatalf("collector metrics: %d: %s", code, said.String())
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&out)
	if err != nil {
		b.t.Fatal(err)
	}
	return families
}

func total(f *dto.MetricFamily) float64 {
	sum := 0.0
	for _, m := range f.GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

func TestTheSidecarTellsHowItIsDoing(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "a \"log\".txt")
	s := b.run("--kind=File", "--path="+path, "--format=JSON", "--metric=loss")
	text := "{\"loss\": 1}\nthis is not JSON\n{\"loss\": 2}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	b.untilPoints(2)
	// The answer may come a moment after the write, and ends the lag.
	var got map[string]*dto.MetricFamily
	b.until("acknowledged", func() bool {
		got = b.scraped()
		return total(got["vernier_collector_points_sent_total"]) == 2 && total(got["vernier_collector_lag_seconds"]) == 0
	})
	for name, want := range map[string]float64{
		"vernier_collector_points_read_total": 2, "vernier_collector_points_capped_total": 0,
		"vernier_collector_unreadable_total": 1, "vernier_collector_batches_total": float64(len(b.woken)), "vernier_collector_lag_seconds": 0,
		"vernier_collector_calls_failed_total": 0,
		// The place behind the beginning of the object that has the value.
		"vernier_collector_source_acked_offset": float64(strings.LastIndex(text, "{") + 1),
		"vernier_collector_source_read_offset":  float64(strings.LastIndex(text, "{") + 1),
	} {
		if f := got[name]; f == nil || total(f) != want {
			t.Errorf("%s is %v, want %v", name, f, want)
		}
	}
	if rss := total(got["process_resident_memory_bytes"]); rss < 1<<20 || rss > 1<<30 {
		t.Errorf("a resident memory of %v bytes", rss)
	}
	s.term()
	if code := dispatch(t.Context(), []string{"metrics", "--dir=" + b.dir}, &bytes.Buffer{}, &bytes.Buffer{}); code != exitFailed {
		t.Errorf("without a sidecar: %d", code)
	}
}

func TestMetricsMayBeServedOnAPortOrNotAtAll(t *testing.T) {
	for at, want := range map[string]bool{"off": false, "127.0.0.1:0": false, "": true} {
		b := newBench(t)
		args := []string{"--kind=StdOut", "--metric=loss"}
		if at != "" {
			args = append(args, "--metrics="+at)
		}
		s := b.run(args...)
		if _, err := os.Stat(filepath.Join(b.dir, metricsSocket)); (err == nil) != want {
			t.Errorf("--metrics=%q: socket: %v", at, err)
		}
		s.term()
	}
}

// A shared directory whose name is too long for a socket costs the metrics, not
// the measurements.
func TestMetricsThatCannotBeServedDoNotStopTheMeasuring(t *testing.T) {
	b := newBench(t)
	b.dir = filepath.Join(b.dir, strings.Repeat("d", 120))
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := b.run("--kind=StdOut", "--metric=loss")
	if err := b.exec("echo", "loss=1").Run(); err != nil {
		t.Fatal(err)
	}
	s.term()
	want(t, "losses", []float64{1}, values(b.points("loss")[0].Points))
	if !strings.Contains(s.said.String(), "metrics are not served") {
		t.Errorf("the sidecar said %q", s.said.String())
	}
}

// TestTheDocsNameEachMetric holds docs/delivery.md to what is served.
func TestTheDocsNameEachMetric(t *testing.T) {
	doc, err := os.ReadFile("../../docs/delivery.md")
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{cfg: runConfig{dir: t.TempDir()}}
	var out bytes.Buffer
	if err := r.writeMetrics(&out); err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllSubmatch(out.Bytes(), -1) {
		served = append(served, string(m[1]))
	}
	var named []string
	for _, m := range regexp.MustCompile("`(vernier_collector_\\w+|process_\\w+)`").FindAllSubmatch(doc, -1) {
		named = append(named, string(m[1]))
	}
	slices.Sort(served)
	slices.Sort(named)
	want(t, "metrics (docs, served)", served, slices.Compact(named))
	if len(served) < 10 {
		t.Errorf("only %v", served)
	}
}
