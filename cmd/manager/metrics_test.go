package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/vernier-ml/vernier/collector/store"
	"github.com/vernier-ml/vernier/controllers/experiment"
	"github.com/vernier-ml/vernier/controllers/metrics"
	"github.com/vernier-ml/vernier/controllers/trial"
	"github.com/vernier-ml/vernier/pki"
	"github.com/vernier-ml/vernier/server"
)

var update = flag.Bool("update", false, "write the table of docs/observability.md")

// registered notes what is registered, which a Registry tells only of metrics that have
// a value.
type registered struct {
	prometheus.Registerer
	rows map[string]bool
}

var described = regexp.MustCompile(`fqName: "([^"]*)", help: ("(?:[^"\\]|\\.)*"), constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

func (r registered) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc, 1)
	c.Describe(descs)
	m := described.FindStringSubmatch((<-descs).String())
	var help string
	if _, err := fmt.Sscanf(m[2], "%q", &help); err != nil {
		return err
	}
	var labels []string
	for _, l := range regexp.MustCompile(`\w+="[^"]*"`).FindAllString(m[3], -1) {
		name, _, _ := strings.Cut(l, "=")
		labels = append(labels, "`"+name+"`")
	}
	for _, l := range strings.FieldsFunc(m[4], func(c rune) bool { return c == ',' }) {
		labels = append(labels, "`"+l+"`")
	}
	r.rows[fmt.Sprintf("| `%s` | %s | %s | %s |\n", m[1], kindOf(c), strings.Join(labels, ", "), help)] = true
	return r.Registerer.Register(c)
}

func (r registered) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func kindOf(c prometheus.Collector) string {
	switch c := c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.GaugeVec, *metrics.Current:
		return "gauge"
	case prometheus.Metric:
		var m dto.Metric
		if err := c.Write(&m); err == nil && m.Histogram != nil {
			return "histogram"
		} else if err == nil && m.Gauge != nil {
			return "gauge"
		}
	}
	return fmt.Sprintf("%T", c)
}

// table is that of all metrics of the manager.
func table(t *testing.T) string {
	t.Helper()
	r := registered{prometheus.NewRegistry(), map[string]bool{}}
	o := options{metricsCompat: "katib", metricsNamed: 1}
	experiment.NewMetrics(o.metrics(r), nil, nil)
	trial.NewMetrics(o.metrics(r), nil)
	registerMetrics(r, o, identity{})
	points, err := store.Open(t.Context(), "memory:")
	if err == nil {
		points, err = server.MeasureStore(points, r)
	}
	if err == nil {
		_, err = server.LimitStore(points, server.Quota{}, r)
	}
	if err == nil {
		_, _, err = server.NewReportHandler(server.ReportConfig{Store: points, Keys: func() [][]byte { return nil }, Metrics: r})
	}
	if err == nil {
		_, _, err = server.NewKatibHandler(server.KatibConfig{Store: points, Reporters: katibPods{}.reporters, Trials: katibPods{}.trials, Metrics: r})
	}
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for row := range r.rows {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	return "| name | type | labels | meaning |\n|---|---|---|---|\n" + strings.Join(rows, "")
}

func TestEachMetricIsInTheTable(t *testing.T) {
	const file, begin, end = "../../docs/observability.md", "<!-- metrics -->\n", "<!-- end of metrics -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no %q and %q", file, begin, end)
	}
	want := table(t)
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range named(t) {
		if !strings.Contains(want, "| `"+name+"` |") {
			t.Errorf("%s is named in the code, and is not registered by what this test calls", name)
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("write it with go test ./cmd/manager -run %s -update (-registered +%s):\n%s", t.Name(), file, diff)
	}
}

func TestTheMetricsOfLibrariesAreThere(t *testing.T) {
	text, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "<!-- libraries -->")
	rows, _, _ = strings.Cut(rows, "<!-- end of libraries -->")
	descs := make(chan *prometheus.Desc, 1000)
	ctrlmetrics.Registry.(prometheus.Collector).Describe(descs)
	close(descs)
	have := map[string]string{}
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		have[m[1]] = m[4]
	}
	found := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\w+ \\| ([^|]*) \\|").FindAllStringSubmatch(rows, -1)
	if len(found) == 0 {
		t.Error("there is no table")
	}
	for _, m := range found {
		labels, ok := have[m[1]]
		want := strings.NewReplacer("`", "", " ", "").Replace(m[2])
		if !ok || labels != want {
			t.Errorf("%s has the labels %q, the table has %q", m[1], labels, want)
		}
	}
}

// named are the metrics that the code names.
func named(t *testing.T) (names []string) {
	t.Helper()
	for _, dir := range []string{".", "../../controllers", "../../server"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`"((?:vernier|katib)_[a-z_]+[a-z])"`).FindAllSubmatch(text, -1) {
				names = append(names, string(m[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(names) < 20 {
		t.Errorf("the code names the metrics %v only", names)
	}
	return names
}

func TestTheEndOfTheCertificateIsAMetric(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ca, key, err := pki.NewAuthority("vernier", now, caValidity)
	if err != nil {
		t.Fatal(err)
	}
	id := identity{certificate: renewed(func() (*tls.Certificate, error) { return leaf(ca, key, "ns", now) }, func() time.Time { return now })}
	dir := t.TempDir() // without a certificate
	reg := prometheus.NewRegistry()
	registerMetrics(reg, options{webhookAddress: ":8443", webhookCertDir: dir}, id)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "vernier_certificate_expiry_timestamp_seconds" {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"own": float64(now.Add(leafValidity).Unix()), "given": 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
