package push

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vernier-ml/vernier/collector"
	"github.com/vernier-ml/vernier/collector/source/sourcetest"
)

// FuzzPush sends any body to every call: it is answered, and what is answered
// with success is read back from the journal.
func FuzzPush(f *testing.F) {
	for path, body := range map[string]string{
		"/report": `[{"loss": NaN, "step": 3}]`,
		"/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainjobs/j/status": `{"trainerStatus":{"lastUpdatedTime":"2026-01-01T00:00:00Z","metrics":[{"name":"loss","value":"0.1"}]}}`,
		"/api/2.0/mlflow/runs/log-batch":                                      `{"run_id":"x","metrics":[{"key":"loss","value":Infinity,"timestamp":"1","step":2.0}],"params":[{"key":"a","value":"b"}],"tags":[]}`,
		"/api/2.0/mlflow/experiments/create":                                  `{"name":"e","tags":[{"key":"k","value":1}]}`,
	} {
		f.Add(path, []byte(body))
	}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		journal := filepath.Join(t.TempDir(), "j")
		push, err := New(Config{Journal: journal, Clock: sourcetest.Quick()})
		if err != nil {
			t.Fatal(err)
		}
		defer closeFile(t, push) // the sidecar's stays open until it ends
		h := push.handlers.routes()
		run := do(h, "POST", "/api/2.0/mlflow/runs/create", []byte(`{"experiment_id":"0"}`))
		if run.status != 200 {
			t.Fatalf("create a run: %d %s", run.status, run.body.Bytes())
		}
		id, err := push.handlers.mlflow.state.newID(mlflowExperiment) // any state may be read
		if err != nil || id == "" {
			t.Fatal(id, err)
		}
		for _, o := range push.handlers.mlflow.state.objects[mlflowRun] {
			body = bytes.ReplaceAll(body, []byte(`"x"`), []byte(`"`+o.ID+`"`))
		}
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " ?#%\r\n") {
			path = "/report"
		}
		first := do(h, "POST", path, body)
		if first.status < 200 || first.status >= 600 || first.status == 500 {
			t.Errorf("status %d: %s", first.status, first.body.Bytes())
		}
		push.intake.journal.close()
		var points []collector.Point
		for p, err := range push.Points(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			points = append(points, p)
		}
		again, err := New(Config{Journal: journal, Clock: sourcetest.Quick()})
		if err != nil {
			t.Fatal(err)
		}
		defer closeFile(t, again)
		again.intake.journal.close()
		i := 0
		for p := range again.Points(t.Context()) {
			if i < len(points) && (p.Seq != points[i].Seq || p.Metric != points[i].Metric) {
				t.Errorf("point %d is %v, then %v", i, points[i], p)
			}
			i++
		}
		if i != len(points) {
			t.Errorf("%d points, then %d", len(points), i)
		}
	})
}

func closeFile(t *testing.T, p *Source) {
	if err := p.intake.journal.lines.Close(); err != nil {
		t.Error(err)
	}
}

// answered is an http.ResponseWriter that keeps what it is given.
type answered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answered) Header() http.Header { return a.header }

func (a *answered) WriteHeader(status int) { a.status = status }

func (a *answered) Write(b []byte) (int, error) { return a.body.Write(b) }

func do(h http.Handler, method, path string, body []byte) *answered {
	r, err := http.NewRequest(method, "http://x"+path, bytes.NewReader(body))
	a := &answered{header: http.Header{}, status: 200}
	if err != nil {
		a.status = 400
		return a
	}
	h.ServeHTTP(a, r)
	return a
}
